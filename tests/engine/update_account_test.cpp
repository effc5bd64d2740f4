#include "sim/engine/update_account.h"

#include <doctest/doctest.h>

namespace lockstep::engine_update_account_test {

using Activity = UpdateAccount::Activity;

Time at(std::int64_t milliseconds) {
  return Time{} + Duration::milliseconds(milliseconds);
}
Duration ms(std::int64_t count) {
  return Duration::milliseconds(count);
}

// One worker: waits to 10, computes from 15 to 40, is heard of at 50, and waits; the window is 20 to 60.
TEST_CASE("Of what a worker did only what lies in the window counts, and adds up to it") {
  UpdateAccount account(1, 1, 1);
  account.spend(0, Activity::waiting, at(10));
  account.compute(0, {at(15), at(40)});
  account.count(5, 1, at(20));
  account.spend_step(0, at(50));
  account.spend(0, Activity::communicating, at(50));
  account.turn_to(0, Activity::waiting);
  account.count(7, 1, at(60));
  CHECK(account.is_complete());
  const UpdateTotals& totals = account.totals();
  CHECK(totals.updates == 7);
  CHECK(totals.window == ms(60 - 20));
  CHECK(totals.workers[0].computing == ms(40 - 20));
  CHECK(totals.workers[0].communicating == ms(50 - 40));
  CHECK(totals.workers[0].waiting == ms(60 - 50));
}

// Whose step goes on when the window ends has computed until then.
TEST_CASE("A step that the window's end cuts off counts as far as it has come") {
  UpdateAccount account(1, 0, 1);
  account.compute(0, {at(5), at(40)});
  account.count(1, 1, at(30));
  CHECK(account.totals().workers[0].communicating == ms(5));
  CHECK(account.totals().workers[0].computing == ms(30 - 5));
}

TEST_CASE("Before the window nothing is measured, and after it no gradient is counted") {
  UpdateAccount account(1, 1, 1);
  account.add_conflict();
  account.add_staleness(3);
  account.add_server_work(ms(1));
  account.hide(ms(1));
  account.end_step(0, at(5));
  account.count(1, 1, at(10));
  CHECK(account.totals().conflicts == 0);
  CHECK(account.totals().staleness.total() == 0);
  CHECK(account.totals().server_work == Duration::zero());
  CHECK(account.totals().hidden == Duration::zero());
  CHECK(account.totals().steps.count() == 0);
  account.count(1, 1, at(20));
  account.count(1, 1, at(30));
  CHECK(account.totals().updates == 1);
  CHECK(account.totals().window == ms(20 - 10));
}

}  // namespace lockstep::engine_update_account_test

#include "sim/study/answers/sweep_rows.h"

#include <utility>

#include "sim/base/check.h"

namespace lockstep {

SweepRows::SweepRows(std::size_t places, std::unique_ptr<SweepJournal> journal)
    : lines_(places, none), kept_(journal ? 0 : places), journal_(std::move(journal)) {}

SweepRows::SweepRows(std::vector<SweepRow> rows) : SweepRows(rows.size()) {
  for (std::size_t place = 0; place < rows.size(); ++place) {
    put(place, std::move(rows[place]));
  }
}

void SweepRows::put(std::size_t place, SweepRow row) {
  if (!row.error.empty()) {
    with_error_.push_back(place);
  }
  lines_[place] = journal_ ? journal_->append(row) : 0;
  if (!journal_) {
    kept_[place] = std::move(row);
  }
}

void SweepRows::find(std::size_t place, const JournalLine& line) {
  if (line.has_error && !has(place)) {
    with_error_.push_back(place);
  }
  lines_[place] = line.place;
}

SweepRow SweepRows::operator[](std::size_t place) const {
  LOCKSTEP_CHECK(has(place), "a row is read once it is there");
  return journal_ ? journal_->read(lines_[place]) : kept_[place];
}

}  // namespace lockstep

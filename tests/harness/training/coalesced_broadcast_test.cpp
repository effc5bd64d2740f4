#include "validate/harness/training/coalesced_broadcast.h"

#include <doctest/doctest.h>

#include "tests/harness/training/recording_communicator.h"
#include "validate/harness/device/cpu_device.h"

namespace lockstep::harness::coalesced_broadcast_test {

TEST_CASE(
    "all tensors travel in one broadcast from rank 0 and come back unchanged where nothing changes them") {
  const std::unique_ptr<Device> device = make_cpu_device();
  RecordingCommunicator communicator(*device, 2);
  const Buffer three(*device, 3, Type::fp32);
  const Buffer five(*device, 5, Type::fp32);
  const std::vector<float> values = {1, 2, 3, 4, 5};
  device->upload(three.tensor(), values.data());
  device->upload(five.tensor(), values.data());
  CoalescedBroadcast broadcast(*device, communicator, {three.tensor(), five.tensor()});
  broadcast.run();
  REQUIRE(communicator.broadcast.size() == 1);
  CHECK(communicator.broadcast[0].elements == 3 + 5);
  CHECK(communicator.roots == std::vector<int>{0});
  std::vector<float> found(5);
  device->download(found.data(), five.tensor());
  CHECK(found == values);
}

TEST_CASE("what arrives in the flat memory reaches each tensor") {
  const std::unique_ptr<Device> device = make_cpu_device();
  struct Arriving : RecordingCommunicator {
    using RecordingCommunicator::RecordingCommunicator;
    Device* target = nullptr;
    Ticket start_broadcast(Tensor values, int root) override {
      const std::vector<float> arriving = {10, 20, 30};
      target->upload(values, arriving.data());
      return RecordingCommunicator::start_broadcast(values, root);
    }
  } communicator(*device, 2);
  communicator.target = device.get();
  const Buffer one(*device, 1, Type::fp32);
  const Buffer two(*device, 2, Type::fp32);
  CoalescedBroadcast(*device, communicator, {one.tensor(), two.tensor()}).run();
  std::vector<float> found(2);
  device->download(found.data(), two.tensor());
  CHECK(found == std::vector<float>{20, 30});
}

TEST_CASE("nothing is broadcast where there is nothing") {
  const std::unique_ptr<Device> device = make_cpu_device();
  RecordingCommunicator communicator(*device, 2);
  CoalescedBroadcast(*device, communicator, {}).run();
  CHECK(communicator.broadcast.empty());
}

}  // namespace lockstep::harness::coalesced_broadcast_test

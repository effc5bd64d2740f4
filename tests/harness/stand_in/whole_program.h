#pragma once

// Everything that the harness asks of a GPU and of NCCL, once and small: for mutants and calls that fail.

#include <vector>

#include "sim/base/error.h"
#include "tests/harness/models/tiny_models.h"
#include "tests/harness/stand_in/stand_in_run.h"
#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/cuda_device.h"
#include "validate/harness/device/cuda_scratch.h"

namespace lockstep::harness::stand_in {

// A number that is wrong is as good as a finding.
inline void expect(bool holds, const char* what) {
  if (!holds)
    throw EnvironmentError(what);
}

inline void exercise_uploads(Device& device) {
  constexpr std::int64_t elements = (3 << 20) + 3;  // three pieces of page-locked memory, in turn, and a rest
  std::vector<float> values(elements);
  for (std::size_t index = 0; index < values.size(); ++index) values[index] = static_cast<float>(index);
  const Buffer buffer(device, elements, Type::fp32);
  const Buffer second(device, elements, Type::fp32);
  device.upload(buffer.tensor(), values.data());
  device.copy(second.tensor(), buffer.tensor());
  std::vector<float> back(values.size());
  device.download(back.data(), second.tensor());
  expect(back == values, "what was uploaded is not what came back");
}

inline void exercise_beside(Device& device) {
  const Buffer from(device, 8, Type::fp32);
  const Buffer to(device, 8, Type::fp32);
  device.fill_zero(from.tensor());
  device.synchronize();
  device.copy_beside(to.tensor(), from.tensor());
  device.synchronize();
  device.scale(to.tensor(), to.tensor(), 2);
  std::vector<float> values(8, 1);
  device.download(values.data(), to.tensor());
  expect(values == std::vector<float>(8, 0), "a copy beside has not come");
}

inline void exercise_marks(Device& device) {
  constexpr int steps = 9;
  const Buffer memory(device, 8, Type::fp32);
  device.reserve_marks(3);
  const Mark begin = device.mark();
  for (int step = 0; step < steps; ++step) device.fill_zero(memory.tensor());
  const Mark end = device.mark();
  expect(device.seconds_between(end, begin) < 0, "time went backwards");
  expect(device.seconds_between(begin, end) > 0, "no time went by");
  expect(device.has_passed(end), "a mark that was waited for has not passed");
  device.fill_zero(memory.tensor());
  const Mark last = device.mark();
  expect(device.seconds_between(last, end) < 0, "time went backwards");
  device.forget_marks();
}

// Memory is given back while the GPU still works on it.
inline void exercise_release(Device& device) {
  CudaRuntime& runtime = runtime_of(device);
  {
    const Buffer memory(device, 64, Type::fp32);
    device.fill_zero(memory.tensor());
  }
  CudaScratch scratch;
  runtime.fill_zero({scratch.at_least(64), 16, Type::fp32});
  runtime.fill_zero({scratch.at_least(128), 32, Type::fp32});
}

// A runtime of its own ends right after an upload.
inline void exercise_end_of_runtime(Device& device) {
  static constexpr float value = 1;
  const Buffer memory(device, 1, Type::fp32);
  CudaRuntime runtime(runtime_of(device).device());
  runtime.upload(memory.tensor(), &value);
}

inline void exercise_convolution(Device& device) {
  const Convolution shape{.batch = 1, .height = 4, .width = 4, .inputs = 2, .outputs = 3};
  const Buffer input(device, 4 * 4 * 2, Type::fp32);
  const Buffer weight(device, 3 * 2, Type::fp32);
  const Buffer output(device, 4 * 4 * 3, Type::fp32);
  device.fill_zero(input.tensor());
  device.fill_zero(weight.tensor());
  device.convolution(shape, output.tensor(), input.tensor(), weight.tensor());
  device.relu(output.tensor(), output.tensor());
  std::vector<float> values(4 * 4 * 3, 1);
  device.download(values.data(), output.tensor());
  expect(values == std::vector<float>(4 * 4 * 3, 0), "a convolution of nothing is something");
}

inline void exercise_collectives(Bench& bench) {
  const Buffer memory(bench.device, 8, Type::fp32);
  bench.communicator.reserve_tickets(1);
  const Mark begin = bench.device.mark();
  bench.device.fill_zero(memory.tensor());
  const Ticket ticket = bench.communicator.start_all_reduce(memory.tensor());
  bench.communicator.wait(ticket);
  bench.device.scale(memory.tensor(), memory.tensor(), 2);
  if (bench.communicator.size() > 1)
    expect(bench.communicator.times_of(ticket, begin).end > 0, "a collective took no time");
  bench.device.synchronize();
  expect(bench.communicator.has_ended(ticket), "a collective that was waited for has not ended");
  bench.communicator.forget_tickets();
  bench.device.forget_marks();
}

inline CheckSettings whole_settings() {
  return {.model = tiny_mlp(),
          .optimizer = {.name = "momentum", .learning_rate = 0.05F},
          .reducer = {.bucket_cap_mb = 0.001, .first_bucket_mb = 0.001}};
}

inline void whole_program(Bench& bench) {
  expect(!bench.device.name().empty() && !bench.device.libraries().empty(), "a GPU has a name");
  bench.device.pci_bus_id();
  bench.communicator.library();
  exercise_uploads(bench.device);
  exercise_beside(bench.device);
  exercise_marks(bench.device);
  exercise_release(bench.device);
  exercise_convolution(bench.device);
  exercise_collectives(bench);
  exercise_end_of_runtime(bench.device);
  for (const CheckLine& line : check_training(bench, whole_settings())) expect(line.holds, line.what.c_str());
}

inline std::vector<RankEnd> run_whole_program(Machine& machine) {
  return machine.run([&](int rank) { run_with_bench(machine, rank, whole_program); });
}

}  // namespace lockstep::harness::stand_in

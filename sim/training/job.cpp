#include "sim/training/job.h"

#include <algorithm>

#include "sim/plan/model.h"

namespace lockstep {

std::vector<std::uint32_t> gradient_order(const Job& job) {
  std::vector<std::uint32_t> order;
  for (auto layer = job.layers.rbegin(); layer != job.layers.rend(); ++layer)
    order.insert(order.end(), layer->gradients.begin(), layer->gradients.end());
  return order;
}

KernelWork divided(KernelWork work, std::int64_t parts) {
  work.flops = divided_up(work.flops, parts);
  work.bytes = divided_up(work.bytes, parts);
  work.duration = Duration::picoseconds(divided_up(work.duration.picoseconds(), parts));
  return work;
}

std::int64_t element_count(const Gradient& gradient) {
  return gradient.bytes.count() / gradient.element_bytes;
}

std::int64_t element_count(const std::vector<Gradient>& gradients) {
  std::int64_t elements = 0;
  for (const Gradient& gradient : gradients) elements += element_count(gradient);
  return elements;
}

Bytes gradient_bytes(const Job& job) {
  Bytes bytes;
  for (const Gradient& gradient : job.gradients) bytes += gradient.bytes;
  return bytes;
}

std::vector<BufferGroup> buffers_by_type(const Model& model) {
  std::vector<BufferGroup> groups;
  for (const BufferTensor& buffer : model.buffers) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const BufferGroup& other) {
      return other.element_bytes == buffer.element_bytes;
    });
    if (group == groups.end())
      group = groups.insert(group, {.element_bytes = buffer.element_bytes});
    ++group->tensors;
    group->bytes += Bytes{buffer.elements * buffer.element_bytes};
  }
  return groups;
}

Bytes buffer_bytes(const Job& job) {
  Bytes bytes;
  for (const BufferGroup& group : job.buffers) bytes += group.bytes;
  return bytes;
}

std::int64_t weight_bytes(const Job& job) {
  return job.gradients.empty() ? 0 : job.gradients.front().element_bytes;
}

std::int64_t updated_bytes(const Job& job) {
  return job.training.master_weights ? 4 : weight_bytes(job);
}

}  // namespace lockstep

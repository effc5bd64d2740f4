#include "validate/harness/training/coalesced_broadcast.h"

#include <utility>

namespace lockstep::harness {
namespace {

std::int64_t total_elements(const std::vector<Tensor>& tensors) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : tensors) elements += tensor.elements;
  return elements;
}

}  // namespace

CoalescedBroadcast::CoalescedBroadcast(Device& device, Communicator& communicator,
                                       std::vector<Tensor> tensors)
    : device_(device), communicator_(communicator), tensors_(std::move(tensors)) {
  if (!tensors_.empty())
    flat_ = Buffer(device, total_elements(tensors_), Type::fp32);
}

void CoalescedBroadcast::run() {
  if (tensors_.empty())
    return;
  std::int64_t begin = 0;
  for (const Tensor& tensor : tensors_) {
    device_.copy(flat_.tensor().part(begin, tensor.elements), tensor);
    begin += tensor.elements;
  }
  communicator_.wait(communicator_.start_broadcast(flat_.tensor(), 0));
  begin = 0;
  for (const Tensor& tensor : tensors_) {
    device_.copy(tensor, flat_.tensor().part(begin, tensor.elements));
    begin += tensor.elements;
  }
}

}  // namespace lockstep::harness

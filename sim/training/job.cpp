#include "sim/training/job.h"

namespace lockstep {

std::vector<std::uint32_t> gradient_order(const Job& job) {
  std::vector<std::uint32_t> order;
  for (auto layer = job.layers.rbegin(); layer != job.layers.rend(); ++layer)
    order.insert(order.end(), layer->gradients.begin(), layer->gradients.end());
  return order;
}

}  // namespace lockstep

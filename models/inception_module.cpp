#include "models/inception_module.h"

namespace lockstep {

FeatureMap write_unit(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                      const Convolution& convolution) {
  return network.relu(name + ".relu",
                      network.convolution_norm(name + ".conv", name + ".bn", input, convolution));
}

FeatureMap InceptionModule::write_chain(const FeatureMap& start,
                                        std::initializer_list<NamedConvolution> chain) {
  FeatureMap features = start;
  for (const NamedConvolution& step : chain)
    features = write_unit(network_, full_name(step.name), features, step.convolution);
  return features;
}

void InceptionModule::add_branch(std::initializer_list<NamedConvolution> chain) {
  branches_.push_back(write_chain(input_, chain));
}

void InceptionModule::add_max_pool_branch(const std::string& pool, const Pooling& options,
                                          std::initializer_list<NamedConvolution> chain) {
  branches_.push_back(write_chain(network_.max_pool(full_name(pool), input_, options), chain));
}

void InceptionModule::add_average_pool_branch(const std::string& pool, const Pooling& options,
                                              std::initializer_list<NamedConvolution> chain) {
  branches_.push_back(write_chain(network_.average_pool(full_name(pool), input_, options), chain));
}

void InceptionModule::add_forked_branch(std::initializer_list<NamedConvolution> chain,
                                        const std::string& name,
                                        const std::pair<NamedConvolution, NamedConvolution>& fork) {
  const FeatureMap stem = write_chain(input_, chain);
  const FeatureMap first = write_chain(stem, {fork.first});
  const FeatureMap second = write_chain(stem, {fork.second});
  branches_.push_back(network_.concatenate(full_name(name) + ".cat", {first, second}));
}

FeatureMap InceptionModule::finish() {
  const FeatureMap output = network_.concatenate(name_ + ".cat", branches_);
  network_.builder().end_block();
  return output;
}

}  // namespace lockstep

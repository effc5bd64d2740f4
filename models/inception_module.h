#pragma once

// Modules of parallel branches whose outputs are concatenated: what GoogLeNet and Inception v3 are made of.
//
// Idea:      a branch is a chain of convolutions, each with its norm and ReLU, or begins with a pool.
// Reference: Szegedy et al. 1409.4842; torchvision/models/googlenet.py, inception.py (BasicConv2d).

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "models/image_network.h"

namespace lockstep {

struct NamedConvolution {
  std::string name;
  Convolution convolution;
};

// NAME.conv, NAME.bn and its ReLU.
FeatureMap write_unit(ImageNetwork& network, const std::string& name, const FeatureMap& input,
                      const Convolution& convolution);

class InceptionModule {
 public:
  InceptionModule(ImageNetwork& network, std::string name, const FeatureMap& input)
      : network_(network), name_(std::move(name)), input_(input) {
    network_.builder().begin_block();
  }

  FeatureMap write_chain(const FeatureMap& start, std::initializer_list<NamedConvolution> chain);

  void add_branch(std::initializer_list<NamedConvolution> chain);
  void add_max_pool_branch(const std::string& pool, const Pooling& options,
                           std::initializer_list<NamedConvolution> chain = {});
  void add_average_pool_branch(const std::string& pool, const Pooling& options,
                               std::initializer_list<NamedConvolution> chain);
  // Ends in the two of `fork` side by side, joined as NAME.cat.
  void add_forked_branch(std::initializer_list<NamedConvolution> chain, const std::string& name,
                         const std::pair<NamedConvolution, NamedConvolution>& fork);

  FeatureMap finish();

 private:
  std::string full_name(const std::string& part) const { return name_ + "." + part; }

  ImageNetwork& network_;
  std::string name_;
  FeatureMap input_;
  std::vector<FeatureMap> branches_;
};

}  // namespace lockstep

#pragma once

// A small model really trained, in the order and at the moments of a simulated cluster.
//
// Problem:   asynchronous updates come faster and are worth less; how much less, no formula says.
// Idea:      play the events of an update loop on real weights: who reads keeps a copy, who applies computes
//            the gradient of its own mini-batch at that copy and moves the weights as they are by then. Two
//            problems whose gradients a page can hold: least squares and softmax regression.
// Invariant: one mini-batch for each worker and iteration, drawn by key: every rule of updating meets the same
//            data. Only + - * / and base/series, so the same bits everywhere.
// Cost:      two passes over a mini-batch an update; one copy of the weights a worker.
// Reference: Zhang, Gupta, Lian, Liu, "Staleness-aware async-SGD for distributed deep learning" (IJCAI 2016):
//            the learning rate divided by the staleness. Here by 1 + staleness, as ours counts from zero.

#include <cstdint>
#include <vector>

#include "sim/engine/update_loop.h"
#include "sim/scenario/comparison_spec.h"

namespace lockstep {

// Features, and what a hidden linear model with some noise says of them.
class TrainingData {
 public:
  explicit TrainingData(const SgdOptions& options);

  std::int64_t weights() const { return outputs_ * options_.features; }
  // Adds the mean gradient of the mini-batch that this worker draws in this iteration.
  void add_gradient(const std::vector<double>& weights, std::uint64_t worker, std::uint64_t iteration,
                    std::vector<double>& gradient) const;
  // The mean over a fixed part of the samples.
  double loss(const std::vector<double>& weights) const;

 private:
  const double* sample(std::int64_t index) const {
    return &features_[static_cast<std::size_t>(index * options_.features)];
  }
  std::vector<double> scores(const std::vector<double>& weights, const double* sample) const;
  double error_of(std::vector<double>& scores, std::int64_t index) const;

  SgdOptions options_;
  std::int64_t outputs_;          // one, or one a class
  std::vector<double> features_;  // sample by sample
  std::vector<double> targets_;   // a value, or the number of a class
};

class SgdReplay {
 public:
  SgdReplay(const TrainingData& data, const SgdOptions& options, std::uint32_t workers);

  void play(const LearningEvent& event);
  const std::vector<double>& weights() const { return weights_; }
  double loss() const { return data_.loss(weights_); }

 private:
  using Weights = std::vector<double>;

  void add_gradient_of(const LearningEvent& event, const Weights& at, Weights& gradient) const;
  void move(Weights& weights, double rate, const Weights& gradient) const;
  void average();

  const TrainingData& data_;
  SgdOptions options_;
  Weights weights_;
  std::vector<Weights> own_;  // of each worker: what it has read, or trains by itself
  Weights sum_;               // of the gradients of a round
  std::int64_t summed_ = 0;
};

}  // namespace lockstep

#include "sim/study/answers/sgd_replay.h"

#include <algorithm>

#include "sim/base/random.h"
#include "sim/base/series.h"

namespace lockstep {
namespace {

constexpr std::int64_t most_samples_of_loss = 512;
constexpr std::uint64_t noise_draws = 4;  // their mean is near enough to a bell
constexpr double noise_width = 0.2;

// Uniform in [-1, 1], in steps of a thousandth.
double draw(std::uint64_t seed, std::uint64_t row, std::uint64_t column) {
  return static_cast<double>(static_cast<std::int64_t>(random_below(keyed_random(seed, row, column), 2001)) -
                             1000) /
         1000.0;
}

// Keys of what is drawn: streams of one seed must not meet.
enum Stream : std::uint64_t { hidden_stream = 1, feature_stream, noise_stream, batch_stream };

std::uint64_t stream(std::uint64_t seed, Stream which) {
  return mixed_bits(seed) + which;
}

double noise(std::uint64_t seed, std::uint64_t sample, std::uint64_t output) {
  double sum = 0;
  for (std::uint64_t part = 0; part < noise_draws; ++part)
    sum += draw(stream(seed, noise_stream), sample, output * noise_draws + part);
  return noise_width * sum;
}

std::int64_t largest(const std::vector<double>& scores) {
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

}  // namespace

TrainingData::TrainingData(const SgdOptions& options)
    : options_(options), outputs_(options.problem == LearningProblem::softmax ? options.classes : 1) {
  const auto rows = static_cast<std::uint64_t>(options.samples);
  const auto columns = static_cast<std::uint64_t>(options.features);
  for (std::uint64_t row = 0; row < rows; ++row)
    for (std::uint64_t column = 0; column < columns; ++column)
      features_.push_back(draw(stream(options.seed, feature_stream), row, column));
  std::vector<double> hidden;
  for (std::uint64_t weight = 0; weight < static_cast<std::uint64_t>(weights()); ++weight)
    hidden.push_back(draw(stream(options.seed, hidden_stream), weight, 0));
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::vector<double> truth = scores(hidden, sample(static_cast<std::int64_t>(row)));
    for (std::uint64_t output = 0; output < truth.size(); ++output)
      truth[output] += noise(options.seed, row, output);
    targets_.push_back(options.problem == LearningProblem::softmax ? static_cast<double>(largest(truth))
                                                                   : truth.front());
  }
}

std::vector<double> TrainingData::scores(const std::vector<double>& weights, const double* sample) const {
  std::vector<double> scores(static_cast<std::size_t>(outputs_));
  const auto width = static_cast<std::size_t>(options_.features);
  for (std::size_t output = 0; output < scores.size(); ++output)
    for (std::size_t feature = 0; feature < width; ++feature)
      scores[output] += weights[output * width + feature] * sample[feature];
  return scores;
}

// The loss of one sample; scores become its derivative by each of them. Half the square, or the negative
// logarithm of the probability of the right class.
double TrainingData::error_of(std::vector<double>& scores, std::int64_t index) const {
  const double target = targets_[static_cast<std::size_t>(index)];
  if (options_.problem == LearningProblem::least_squares) {
    scores.front() -= target;
    return scores.front() * scores.front() / 2;
  }
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = exponential(score - highest);
  for (double& score : scores) score /= sum;
  double& right = scores[static_cast<std::size_t>(target)];
  constexpr double least_probability = 1e-300;
  const double loss = -natural_logarithm(std::max(right, least_probability));
  right -= 1;
  return loss;
}

void TrainingData::add_gradient(const std::vector<double>& weights, std::uint64_t worker,
                                std::uint64_t iteration, std::vector<double>& gradient) const {
  const auto width = static_cast<std::size_t>(options_.features);
  const std::uint64_t seed = keyed_random(stream(options_.seed, batch_stream), worker, iteration);
  for (std::int64_t drawn = 0; drawn < options_.batch; ++drawn) {
    const std::uint64_t bits = mixed_bits(seed + static_cast<std::uint64_t>(drawn));
    const auto index =
        static_cast<std::int64_t>(random_below(bits, static_cast<std::uint64_t>(options_.samples)));
    std::vector<double> derivatives = scores(weights, sample(index));
    error_of(derivatives, index);
    for (std::size_t output = 0; output < derivatives.size(); ++output)
      for (std::size_t feature = 0; feature < width; ++feature)
        gradient[output * width + feature] +=
            derivatives[output] * sample(index)[feature] / static_cast<double>(options_.batch);
  }
}

double TrainingData::loss(const std::vector<double>& weights) const {
  const std::int64_t samples = std::min(options_.samples, most_samples_of_loss);
  double sum = 0;
  for (std::int64_t index = 0; index < samples; ++index) {
    std::vector<double> derivatives = scores(weights, sample(index));
    sum += error_of(derivatives, index);
  }
  return sum / static_cast<double>(samples);
}

SgdReplay::SgdReplay(const TrainingData& data, const SgdOptions& options, std::uint32_t workers)
    : data_(data),
      options_(options),
      weights_(static_cast<std::size_t>(data.weights())),
      own_(workers, weights_),
      sum_(weights_) {}

void SgdReplay::play(const LearningEvent& event) {
  Weights& own = own_[event.worker];
  Weights gradient;
  switch (event.kind) {
    case LearningKind::read:
      own = weights_;
      return;
    case LearningKind::apply:
      gradient.resize(weights_.size());
      add_gradient_of(event, own, gradient);
      return move(weights_,
                  options_.is_staleness_aware
                      ? options_.learning_rate / static_cast<double>(1 + event.staleness)
                      : options_.learning_rate,
                  gradient);
    case LearningKind::contribute:
      add_gradient_of(event, own, sum_);
      ++summed_;
      return;
    case LearningKind::step:
      for (double& sum : sum_) sum /= static_cast<double>(summed_);
      move(weights_, options_.learning_rate, sum_);
      std::fill(sum_.begin(), sum_.end(), 0.0);
      summed_ = 0;
      return;
    case LearningKind::local_step:
      gradient.resize(weights_.size());
      add_gradient_of(event, own, gradient);
      return move(own, options_.learning_rate, gradient);
    case LearningKind::average:
      return average();
  }
}

void SgdReplay::add_gradient_of(const LearningEvent& event, const Weights& at, Weights& gradient) const {
  data_.add_gradient(at, event.worker, static_cast<std::uint64_t>(event.iteration), gradient);
}

void SgdReplay::move(Weights& weights, double rate, const Weights& gradient) const {
  for (std::size_t weight = 0; weight < weights.size(); ++weight) weights[weight] -= rate * gradient[weight];
}

void SgdReplay::average() {
  std::fill(weights_.begin(), weights_.end(), 0.0);
  for (const Weights& own : own_)
    for (std::size_t weight = 0; weight < weights_.size(); ++weight)
      weights_[weight] += own[weight] / static_cast<double>(own_.size());
  for (Weights& own : own_) own = weights_;
}

}  // namespace lockstep

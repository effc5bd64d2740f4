#pragma once

// The small kernels of a training step, each formula once.
//
// Problem:   see executor.h.
// Idea:      a kernel is a function template over the executor and T, the type of activations; what a formula
//            computes is a small struct where several kernels share its shape. Whatever the type, formulas
//            are in fp32 and round once, when they store.
// Invariant: outputs may be inputs wherever an element depends on its own index alone. Functions given to an
//            executor use raw pointers and numbers, nothing of the host.
// Cost:      each is bound by memory: the bytes it names, read and written once, but where a comment says
//            more.

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "validate/harness/device/device.h"
#include "validate/harness/device/executor.h"
#include "validate/harness/device/half.h"

namespace lockstep::harness::kernels {

struct Sum {
  LOCKSTEP_DEVICE_FUNCTION float nothing() const { return 0; }
  LOCKSTEP_DEVICE_FUNCTION float combine(float a, float b) const { return a + b; }
};

// The largest float, by keys that are ordered as floats are: a maximum of integers has no special cases and
// is one instruction of a vector unit.
struct Largest {
  LOCKSTEP_DEVICE_FUNCTION static std::int32_t flipped(std::int32_t key) {
    return key ^ ((key >> 31) & 0x7fffffff);
  }
  LOCKSTEP_DEVICE_FUNCTION static std::int32_t key_of(float value) {
    return flipped(static_cast<std::int32_t>(bits_of(value)));
  }
  LOCKSTEP_DEVICE_FUNCTION static float value_of(std::int32_t key) {
    return float_of(static_cast<std::uint32_t>(flipped(key)));
  }
  LOCKSTEP_DEVICE_FUNCTION std::int32_t nothing() const { return key_of(-FLT_MAX); }
  LOCKSTEP_DEVICE_FUNCTION std::int32_t combine(std::int32_t a, std::int32_t b) const {
    return a < b ? b : a;
  }
};

struct Any {
  LOCKSTEP_DEVICE_FUNCTION std::int32_t nothing() const { return 0; }
  LOCKSTEP_DEVICE_FUNCTION std::int32_t combine(std::int32_t a, std::int32_t b) const { return a | b; }
};

struct Pair {
  float first;
  float second;
};

struct PairSum {
  LOCKSTEP_DEVICE_FUNCTION Pair nothing() const { return {0, 0}; }
  LOCKSTEP_DEVICE_FUNCTION Pair combine(Pair a, Pair b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

struct Identity {
  LOCKSTEP_DEVICE_FUNCTION float operator()(float x) const { return x; }
};

struct Scaled {
  float factor;
  LOCKSTEP_DEVICE_FUNCTION float operator()(float x) const { return factor * x; }
};

struct Relu {
  // No number stays none: a step that went wrong must be seen.
  LOCKSTEP_DEVICE_FUNCTION float operator()(float x) const { return x < 0 ? 0 : x; }
};

// 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3): Hendrycks and Gimpel, "Gaussian error linear
// units", 2016. Here as x / (1 + exp(-2u)), which is the same and needs no tanh.
struct Gelu {
  LOCKSTEP_DEVICE_FUNCTION static float gate(float x) {
    const float twice_u = x * (1.5957691216F + 0.0713548162726F * x * x);
    return 1.0F / (1.0F + expf(-twice_u));
  }
  LOCKSTEP_DEVICE_FUNCTION float operator()(float x) const { return x * gate(x); }
};

struct Added {
  LOCKSTEP_DEVICE_FUNCTION float operator()(float a, float b) const { return a + b; }
};

struct ReluBackward {
  LOCKSTEP_DEVICE_FUNCTION float operator()(float gradient, float output) const {
    return output > 0 ? gradient : 0;
  }
};

// With gate s: d/dx (x s) = s + x s (1 - s) d(2u)/dx.
struct GeluBackward {
  LOCKSTEP_DEVICE_FUNCTION float operator()(float gradient, float x) const {
    const float gate = Gelu::gate(x);
    const float slope = 1.5957691216F + 3 * 0.0713548162726F * x * x;
    return gradient * gate * (1 + x * (1 - gate) * slope);
  }
};

// output[i] = formula(input[i])
template <class To, class From, class Executor, class Formula>
void map(const Executor& executor, Tensor output, Tensor input, Formula formula) {
  executor.map(
      output.elements, [=] LOCKSTEP_DEVICE_FUNCTION(float& to, float from) { to = formula(from); },
      writes<To>(output), reads<From>(input));
}

// output[i] = formula(a[i], b[i])
template <class T, class Executor, class Formula>
void map(const Executor& executor, Tensor output, Tensor a, Tensor b, Formula formula) {
  executor.map(
      output.elements,
      [=] LOCKSTEP_DEVICE_FUNCTION(float& to, float left, float right) { to = formula(left, right); },
      writes<T>(output), reads<T>(a), reads<T>(b));
}

template <class T, class Executor>
void add_bias(const Executor& executor, Tensor output, Tensor bias) {
  const std::int64_t columns = bias.elements;
  executor.map_in_rows(
      output.elements / columns, columns,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t, std::int64_t, float& to, float shift) { to += shift; },
      updates<T>(output), of_column(bias));
}

template <class T, class Executor>
void sum_columns(const Executor& executor, Tensor sums, Tensor input, bool accumulates) {
  float* const to = sums.as<float>();
  const T* const from = input.as<const T>();
  const std::int64_t columns = sums.elements;
  executor.reduce_columns(
      input.elements / columns, columns, Sum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        return load(from[row * columns + column]);
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t column, float sum) {
        to[column] = accumulates ? to[column] + sum : sum;
      });
}

// Of each row of scores: its largest, and the sum of exp(score - largest). Column c counts in row r where
// c <= r % period; a period of 0 counts all.
template <class T, class Executor>
void softmax_statistics(const Executor& executor, float* largest, float* sums, Tensor scores,
                        std::int64_t columns, std::int64_t period) {
  const T* const from = scores.as<const T>();
  const std::int64_t rows = scores.elements / columns;
  executor.reduce_rows(
      rows, columns, Largest{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        const std::int64_t last = period > 0 ? row % period : columns;
        const std::int32_t key = Largest::key_of(load(from[row * columns + column]));
        return column <= last ? key : Largest{}.nothing();
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int32_t key) {
        largest[row] = Largest::value_of(key);
      });
  executor.reduce_rows(
      rows, columns, Sum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        const std::int64_t last = period > 0 ? row % period : columns;
        const float weight = expf(load(from[row * columns + column]) - largest[row]);
        return column <= last ? weight : 0.0F;
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, float value) { sums[row] = value; });
}

// Reads its input three times. `statistics`: two numbers a row.
template <class T, class Executor>
void causal_softmax(const Executor& executor, float* statistics, Tensor output, Tensor input,
                    std::int64_t columns) {
  const std::int64_t rows = input.elements / columns;
  float* const largest = statistics;
  float* const sums = statistics + rows;
  softmax_statistics<T>(executor, largest, sums, input, columns, columns);
  executor.map_in_rows(
      rows, columns,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column, float& to, float score) {
        const float weight = expf(score - largest[row]) / sums[row];
        to = column <= row % columns ? weight : 0.0F;
      },
      writes<T>(output), reads<T>(input));
}

// dx = p (g - sum(p g)), p the output: 0 where it is masked. Reads twice. `statistics`: one number a row.
template <class T, class Executor>
void causal_softmax_backward(const Executor& executor, float* statistics, Tensor input_gradient,
                             Tensor output_gradient, Tensor output, std::int64_t columns) {
  const std::int64_t rows = output.elements / columns;
  const T* const gradient = output_gradient.as<const T>();
  const T* const share = output.as<const T>();
  executor.reduce_rows(
      rows, columns, Sum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        const std::int64_t place = row * columns + column;
        return load(share[place]) * load(gradient[place]);
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, float value) { statistics[row] = value; });
  executor.map_in_rows(
      rows, columns,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t, float& to, float probability,
                                   float slope) { to = probability * (slope - statistics[row]); },
      writes<T>(input_gradient), reads<T>(output), reads<T>(output_gradient));
}

// Reads its input three times; the gradient may be written over the logits. `statistics`: two numbers a row.
template <class T, class Executor>
void cross_entropy(const Executor& executor, float* statistics, Tensor loss, Tensor logits_gradient,
                   Tensor logits, Tensor targets, std::int64_t classes, float scale) {
  const std::int64_t rows = targets.elements;
  float* const largest = statistics;
  float* const sums = statistics + rows;
  softmax_statistics<T>(executor, largest, sums, logits, classes, 0);
  const T* const from = logits.as<const T>();
  const std::int32_t* const target = targets.as<const std::int32_t>();
  float* const mean = loss.as<float>();
  executor.reduce_rows(
      1, rows, Sum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t, std::int64_t row) {
        return logf(sums[row]) + largest[row] - load(from[row * classes + target[row]]);
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t, float sum) { mean[0] = sum / static_cast<float>(rows); });
  const float factor = scale / static_cast<float>(rows);
  executor.map_in_rows(
      rows, classes,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column, float& to, float logit) {
        const float share = expf(logit - largest[row]) / sums[row];
        to = factor * (share - (column == target[row] ? 1.0F : 0.0F));
      },
      writes<T>(logits_gradient), reads<T>(logits));
}

template <class T, class Executor>
void embed(const Executor& executor, Tensor output, Tensor tokens, Tensor words, Tensor positions,
           std::int64_t width, std::int64_t sequence) {
  T* const to = output.as<T>();
  const std::int32_t* const token = tokens.as<const std::int32_t>();
  const float* const word = words.as<const float>();
  const float* const position = positions.as<const float>();
  executor.for_each_in_rows(
      tokens.elements, width, [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        to[row * width + column] =
            stored<T>(word[token[row] * width + column] + position[row % sequence * width + column]);
      });
}

template <class T, class Executor>
void embed_backward(const Executor& executor, Tensor words_gradient, Tensor positions_gradient,
                    Tensor output_gradient, Tensor tokens, std::int64_t width, std::int64_t sequence) {
  float* const word = words_gradient.as<float>();
  float* const position = positions_gradient.as<float>();
  const T* const gradient = output_gradient.as<const T>();
  const std::int32_t* const token = tokens.as<const std::int32_t>();
  executor.for_each_in_rows(
      tokens.elements, width, [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        Executor::add(word + token[row] * width + column, load(gradient[row * width + column]));
      });
  executor.reduce_columns(
      tokens.elements / sequence, sequence * width, Sum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        return load(gradient[row * sequence * width + column]);
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t column, float sum) { position[column] += sum; });
}

// PyTorch's: weight decay is part of the gradient; v = momentum v + g; p = p - rate v.
template <class Executor>
void sgd(const Executor& executor, Tensor value, Tensor gradient, Tensor velocity, SgdStep step) {
  if (velocity.is_empty()) {
    executor.map(
        value.elements,
        [=] LOCKSTEP_DEVICE_FUNCTION(float& parameter, float slope) {
          const float total = slope * step.gradient_scale + step.weight_decay * parameter;
          parameter -= step.learning_rate * total;
        },
        updates<float>(value), reads<float>(gradient));
    return;
  }
  executor.map(
      value.elements,
      [=] LOCKSTEP_DEVICE_FUNCTION(float& parameter, float& speed, float slope) {
        const float total = slope * step.gradient_scale + step.weight_decay * parameter;
        speed = step.momentum * speed + total;
        parameter -= step.learning_rate * speed;
      },
      updates<float>(value), updates<float>(velocity), reads<float>(gradient));
}

// Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, as PyTorch arranges it.
template <class Executor>
void adamw(const Executor& executor, Tensor value, Tensor gradient, Tensor first_moment, Tensor second_moment,
           AdamStep step) {
  const double steps = static_cast<double>(step.step);
  const float rate =
      static_cast<float>(step.learning_rate / (1 - std::pow(static_cast<double>(step.beta1), steps)));
  const float correction =
      static_cast<float>(1 / std::sqrt(1 - std::pow(static_cast<double>(step.beta2), steps)));
  const float kept = 1 - step.learning_rate * step.weight_decay;
  executor.map(
      value.elements,
      [=] LOCKSTEP_DEVICE_FUNCTION(float& parameter, float& mean, float& square, float slope) {
        const float scaled = slope * step.gradient_scale;
        mean = step.beta1 * mean + (1 - step.beta1) * scaled;
        square = step.beta2 * square + (1 - step.beta2) * scaled * scaled;
        parameter = parameter * kept - rate * mean / (sqrtf(square) * correction + step.epsilon);
      },
      updates<float>(value), updates<float>(first_moment), updates<float>(second_moment),
      reads<float>(gradient));
}

// Of [rows, columns]. Rows that find one all write the same.
template <class T, class Executor>
void find_non_finite_in_rows(const Executor& executor, float* flag, const T* from, std::int64_t rows,
                             std::int64_t columns) {
  executor.reduce_rows(
      rows, columns, Any{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) -> std::int32_t {
        return is_finite(load(from[row * columns + column])) ? 0 : 1;
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t, std::int32_t any) {
        if (any != 0)
          flag[0] = 1.0F;
      });
}

// Cut into rows for a device that works on many at once.
template <class T, class Executor>
void find_non_finite(const Executor& executor, Tensor found, Tensor values) {
  constexpr std::int64_t row = 1 << 14;
  const std::int64_t rows = values.elements / row;
  float* const flag = found.as<float>();
  const T* const from = values.as<const T>();
  find_non_finite_in_rows(executor, flag, from, rows, row);
  find_non_finite_in_rows(executor, flag, from + rows * row, 1, values.elements - rows * row);
}

}  // namespace lockstep::harness::kernels

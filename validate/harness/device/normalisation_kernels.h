#pragma once

// LayerNorm and BatchNorm: Ba, Kiros and Hinton, 2016; Ioffe and Szegedy, 2015.
//
// Problem:   the variance from sums of squares cancels where the mean is large; a second pass reads memory
//            again.
// Idea:      one pass of sums of (x - pivot) and (x - pivot)^2, the pivot being the first number of the row
//            or column. It lies at most sqrt(n - 1) deviations from the mean and mostly one or two, so that
//            little cancels: the variance loses (distance / deviation)^2 roundings. Backward is one pass of
//            sums of g and g x', x' the normalised input, and one that writes.
// Cost:      forward reads its input twice, backward both of its inputs twice.

#include "validate/harness/device/kernels.h"

namespace lockstep::harness::kernels {

struct Moments {
  float mean;
  float variance;  // of all there is: divided by the count
};

LOCKSTEP_DEVICE_FUNCTION inline Moments moments_of(Pair sums, float pivot, float count) {
  const float distance = sums.first / count;
  const float variance = sums.second / count - distance * distance;
  return {pivot + distance, variance > 0 ? variance : 0.0F};
}

template <class T, class Executor>
void layer_norm(const Executor& executor, const Normalisation& norm, Tensor output, Tensor input) {
  const std::int64_t columns = norm.columns;
  const float epsilon = norm.epsilon;
  float* const mean = norm.mean.as<float>();
  float* const inverse = norm.inverse_deviation.as<float>();
  const T* const from = input.as<const T>();
  executor.reduce_rows(
      norm.rows, columns, PairSum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        const float distance = load(from[row * columns + column]) - load(from[row * columns]);
        return Pair{distance, distance * distance};
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, Pair sums) {
        const Moments moments = moments_of(sums, load(from[row * columns]), static_cast<float>(columns));
        mean[row] = moments.mean;
        inverse[row] = 1.0F / sqrtf(moments.variance + epsilon);
      });
  executor.map_in_rows(
      norm.rows, columns,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t, float& to, float value, float gain,
                                   float shift) {
        const float normalised = (value - mean[row]) * inverse[row];
        to = normalised * gain + shift;
      },
      writes<T>(output), reads<T>(input), of_column(norm.gain), of_column(norm.shift));
}

// With h = g gain: dx = (h - mean(h) - x' mean(h x')) / deviation, means over the row.
// `statistics`: two numbers a row.
template <class T, class Executor>
void layer_norm_input_gradient(const Executor& executor, float* statistics, const Normalisation& norm,
                               Tensor input_gradient, Tensor output_gradient, Tensor input) {
  const std::int64_t columns = norm.columns;
  const float* const mean = norm.mean.as<const float>();
  const float* const inverse = norm.inverse_deviation.as<const float>();
  const float* const gain = norm.gain.as<const float>();
  const T* const from = input.as<const T>();
  const T* const gradient = output_gradient.as<const T>();
  executor.reduce_rows(
      norm.rows, columns, PairSum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        const std::int64_t place = row * columns + column;
        const float slope = load(gradient[place]) * gain[column];
        return Pair{slope, slope * (load(from[place]) - mean[row]) * inverse[row]};
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, Pair sums) {
        statistics[2 * row] = sums.first / static_cast<float>(columns);
        statistics[2 * row + 1] = sums.second / static_cast<float>(columns);
      });
  executor.map_in_rows(
      norm.rows, columns,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t, float& to, float output_slope, float value,
                                   float factor) {
        const float slope = output_slope * factor;
        const float normalised = (value - mean[row]) * inverse[row];
        const float centred = slope - statistics[2 * row] - normalised * statistics[2 * row + 1];
        to = centred * inverse[row];
      },
      writes<T>(input_gradient), reads<T>(output_gradient), reads<T>(input), of_column(norm.gain));
}

template <class T, class Executor>
void layer_norm_parameter_gradients(const Executor& executor, const Normalisation& norm,
                                    const NormalisationGradients& gradients, Tensor output_gradient,
                                    Tensor input) {
  const std::int64_t columns = norm.columns;
  const bool accumulates = gradients.accumulates;
  const float* const mean = norm.mean.as<const float>();
  const float* const inverse = norm.inverse_deviation.as<const float>();
  const T* const from = input.as<const T>();
  const T* const gradient = output_gradient.as<const T>();
  float* const gain = gradients.gain.as<float>();
  float* const shift = gradients.shift.as<float>();
  executor.reduce_columns(
      norm.rows, columns, PairSum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        const std::int64_t place = row * columns + column;
        const float slope = load(gradient[place]);
        return Pair{slope, slope * (load(from[place]) - mean[row]) * inverse[row]};
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t column, Pair sums) {
        shift[column] = accumulates ? shift[column] + sums.first : sums.first;
        gain[column] = accumulates ? gain[column] + sums.second : sums.second;
      });
}

// Running variance is of the population the batch was drawn from: divided by rows - 1, as PyTorch has it.
template <class T, class Executor>
void batch_norm(const Executor& executor, const Normalisation& norm, Tensor running_mean,
                Tensor running_variance, float momentum, Tensor output, Tensor input) {
  const std::int64_t rows = norm.rows;
  const std::int64_t columns = norm.columns;
  const float epsilon = norm.epsilon;
  float* const mean = norm.mean.as<float>();
  float* const inverse = norm.inverse_deviation.as<float>();
  float* const kept_mean = running_mean.as<float>();
  float* const kept_variance = running_variance.as<float>();
  const T* const from = input.as<const T>();
  executor.reduce_columns(
      rows, columns, PairSum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        const float distance = load(from[row * columns + column]) - load(from[column]);
        return Pair{distance, distance * distance};
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t column, Pair sums) {
        const float count = static_cast<float>(rows);
        const Moments moments = moments_of(sums, load(from[column]), count);
        mean[column] = moments.mean;
        inverse[column] = 1.0F / sqrtf(moments.variance + epsilon);
        const float unbiased = rows > 1 ? moments.variance * (count / (count - 1)) : moments.variance;
        kept_mean[column] += momentum * (moments.mean - kept_mean[column]);
        kept_variance[column] += momentum * (unbiased - kept_variance[column]);
      });
  executor.map_in_rows(
      rows, columns,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t, std::int64_t, float& to, float value, float centre,
                                   float inverse_deviation, float gain, float shift) {
        const float normalised = (value - centre) * inverse_deviation;
        to = normalised * gain + shift;
      },
      writes<T>(output), reads<T>(input), of_column(norm.mean), of_column(norm.inverse_deviation),
      of_column(norm.gain), of_column(norm.shift));
}

// dx = gain (g - mean(g) - x' mean(g x')) / deviation, means over the column. `statistics`: two numbers a
// column.
template <class T, class Executor>
void batch_norm_backward(const Executor& executor, float* statistics, const Normalisation& norm,
                         const NormalisationGradients& gradients, Tensor input_gradient,
                         Tensor output_gradient, Tensor input) {
  const std::int64_t columns = norm.columns;
  const float count = static_cast<float>(norm.rows);
  const bool accumulates = gradients.accumulates;
  const float* const mean = norm.mean.as<const float>();
  const float* const inverse = norm.inverse_deviation.as<const float>();
  const T* const from = input.as<const T>();
  const T* const gradient = output_gradient.as<const T>();
  float* const gain_gradient = gradients.gain.as<float>();
  float* const shift_gradient = gradients.shift.as<float>();
  float* const mean_slope = statistics;
  float* const mean_product = statistics + columns;
  executor.reduce_columns(
      norm.rows, columns, PairSum{},
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t row, std::int64_t column) {
        const std::int64_t place = row * columns + column;
        const float slope = load(gradient[place]);
        return Pair{slope, slope * (load(from[place]) - mean[column]) * inverse[column]};
      },
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t column, Pair sums) {
        mean_slope[column] = sums.first / count;
        mean_product[column] = sums.second / count;
        shift_gradient[column] = accumulates ? shift_gradient[column] + sums.first : sums.first;
        gain_gradient[column] = accumulates ? gain_gradient[column] + sums.second : sums.second;
      });
  executor.map_in_rows(
      norm.rows, columns,
      [=] LOCKSTEP_DEVICE_FUNCTION(std::int64_t, std::int64_t, float& to, float slope, float value,
                                   float centre, float inverse_deviation, float gain, float slope_mean,
                                   float product_mean) {
        const float normalised = (value - centre) * inverse_deviation;
        const float centred = slope - slope_mean - normalised * product_mean;
        to = centred * gain * inverse_deviation;
      },
      writes<T>(input_gradient), reads<T>(output_gradient), reads<T>(input), of_column(norm.mean),
      of_column(norm.inverse_deviation), of_column(norm.gain), of_column(mean_slope),
      of_column(mean_product));
}

}  // namespace lockstep::harness::kernels

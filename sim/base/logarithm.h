#pragma once

// Logarithm and exponential that every machine finds alike.
//
// Problem:   a result must not depend on whose mathematical library rounded it.
// Idea:      sums, products and quotients alone, which IEEE 754 rounds in one way: the series of
//            2 atanh((x - 1) / (x + 1)) near 1 and that of e^x near 0, after halving until x is near.
// Invariant: exponential(logarithm(x)) is x within 1e-12 of it.
// Cost:      some forty operations.

namespace lockstep {

// Of a positive number.
inline double logarithm(double x) {
  constexpr double ln_2 = 0.693147180559945309417232121458;
  int halvings = 0;
  for (; x > 1.5; x /= 2) ++halvings;
  for (; x < 0.75; x *= 2) --halvings;
  const double z = (x - 1) / (x + 1);
  double power = z;
  double sum = 0;
  for (int term = 1; term < 40; term += 2, power *= z * z) sum += power / term;
  return 2 * sum + halvings * ln_2;
}

// Of at most 700 either way.
inline double exponential(double x) {
  int halvings = 0;
  for (; x > 0.5 || x < -0.5; x /= 2) ++halvings;
  double power = 1;
  double sum = 1;
  for (int term = 1; term < 20; ++term) {
    power *= x / term;
    sum += power;
  }
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

}  // namespace lockstep

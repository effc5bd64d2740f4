#pragma once

// Exponential and logarithm that give the same bits everywhere.
//
// Problem:   std::exp and std::log differ in their last bits from one C library to the next, and a report
//            must not.
// Idea:      reduce to a short interval by powers of two, then a fixed number of terms of the series, with
//            nothing but + - * /, which IEEE 754 rounds alike everywhere (contraction is off).
// Invariant: relative error below 10^-14 where the result is a normal number.
// Cost:      about 30 divisions or multiplications.

namespace lockstep {

// e^x; 0 far below, and at most e^700.
double exponential(double x);
// ln x, for a positive normal number.
double natural_logarithm(double x);

}  // namespace lockstep

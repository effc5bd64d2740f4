#pragma once

// cuDNN's algorithms by the names cuDNN gives them.
//
// Problem:   cuDNN numbers its algorithms and tells no names, and numbers say nothing to who reads a file.
// Idea:      one table for each kind, read both ways; what a later cuDNN has beside them goes by its number.
// Errors:    EnvironmentError where a name is not known: rank 0 has another cuDNN.

#include <cudnn.h>

#include <string>

namespace lockstep::harness {

std::string name_of(cudnnConvolutionFwdAlgo_t algorithm);
std::string name_of(cudnnConvolutionBwdDataAlgo_t algorithm);
std::string name_of(cudnnConvolutionBwdFilterAlgo_t algorithm);
std::string name_of(cudnnMathType_t math);

void find_named(const std::string& name, cudnnConvolutionFwdAlgo_t& algorithm);
void find_named(const std::string& name, cudnnConvolutionBwdDataAlgo_t& algorithm);
void find_named(const std::string& name, cudnnConvolutionBwdFilterAlgo_t& algorithm);
void find_named(const std::string& name, cudnnMathType_t& math);

}  // namespace lockstep::harness

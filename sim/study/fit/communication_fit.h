#pragma once

// From measured tables of a machine to the constants of its communication.
//
// Problem:   a machine's link efficiencies, step costs and launches are known only through times that mix
//            them all.
// Idea:      the simulator itself predicts every measured point while a least-squares solver moves the
//            constants: residuals are logarithms of predicted over measured, robust against outliers, one
//            vote a cell; the constants are held near what the machine's parts have elsewhere (the prior,
//            part_fit.h) unless the points say otherwise. What starting kernels costs the host belongs to how a
//            benchmark was run: each group has its own.
// Invariant: the library's choices are taken as they are, never fitted; no constant belongs to one row.
// Cost:      a few seconds a machine.
// Reference: Ceres Solver (dense Levenberg-Marquardt, numeric differentiation).

#include <Eigen/Dense>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/load/hardware/communication_constants.h"
#include "sim/load/reading/profile_store.h"
#include "sim/network/calibration.h"
#include "sim/study/bench/measured_tables.h"

namespace lockstep {

// Where the constants of a machine are expected: logarithms of each over its usual value, in the order of
// `constants_of` the machine. `root` times what lies between has a spread of one in each direction.
struct ConstantsPrior {
  Eigen::VectorXd mean;
  Eigen::MatrixXd root;
};
// Of a machine of whose parts nothing is known.
ConstantsPrior usual_prior(std::span<const CommunicationConstant* const> constants);

struct CommunicationFit {
  Calibration calibration;
  std::map<std::string, double> host_launch_us = {};  // by group
  std::map<std::string, std::int64_t> release = {};   // by group: NCCL_VERSION_CODE taken for unnamed ones
  std::size_t points = 0;
  Eigen::VectorXd logarithms = {};  // of each constant over its usual value
};

struct FittedPoint {
  const MeasuredTable* table = nullptr;
  MeasuredRow measured;
  double predicted_s = 0;
  std::string algorithm;
  std::string protocol;

  double measured_s() const { return measured.time.in_seconds(); }
  double error() const { return predicted_s / measured_s() - 1; }
};

// The measured points of one machine and software stack, ready to be predicted with any constants.
class TableSet {
 public:
  // Throws ConfigError for a table that its machine cannot have run.
  TableSet(std::span<const MeasuredTable> tables, const ProfileStore& store);
  ~TableSet();
  TableSet(TableSet&&) noexcept;

  const std::vector<const CommunicationConstant*>& constants() const;
  // From the prior's mean; or from the fit of nearly the same tables, whose word on releases is taken.
  CommunicationFit fit(const ConstantsPrior& prior, const CommunicationFit* start = nullptr) const;
  // These constants, fitted to nothing.
  CommunicationFit at(const Eigen::VectorXd& logarithms) const;
  // What the points alone say of the constants near `fit`: inverse variances of the logarithms, as a matrix.
  Eigen::MatrixXd information(const CommunicationFit& fit) const;
  // What these constants predict of the tables; groups that `fit` has not seen start kernels as fast as the
  // calibration says.
  std::vector<FittedPoint> predict(const CommunicationFit& fit) const;
  std::size_t size() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep

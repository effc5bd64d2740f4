#pragma once

// From the tables of all machines to the constants of the parts they are made of.
//
// Problem:   a machine's tables tell some of its constants well and others not at all, and a machine without tables has
//            none; but machines share parts.
// Idea:      one model for all tables. A part has constants; a machine's are those of its parts times a small factor of
//            its own, drawn toward 1; the machine's points see its own. A machine is fitted with what the others say of
//            its parts (or of what stands in for one that no other has) as its prior, and tells the parts in turn what
//            its points say (their information, as a Gaussian about its fit): rounds of that end at the most likely
//            constants of all. How far machines with one part lie apart is estimated, for each constant, from how far
//            they do (Student's t, since a host that is the limit puts a few machines far off).
// Invariant: a machine's points never count for the middle of its own prior; how wide that is they do tell, as one of all
//            machines and by their weight in Student's t. What a constant's points do not tell stays where the
//            parts have it; two constants that points cannot tell apart move together, since information is a matrix.
// Cost:      a fit and a curvature a machine and round: minutes for all shipped tables on two cores; a posterior without
//            some machine is one solution of some 200 linear equations.
// Reference: Gelman et al., Bayesian Data Analysis, chapter 5 (hierarchical models); Minka, "Expectation Propagation for
//            Approximate Bayesian Inference", 2001.

#include <Eigen/Dense>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/load/hardware/machine_parts.h"
#include "sim/study/fit/communication_fit.h"

namespace lockstep {

// The tables of one machine and software stack, and what was learnt of it.
struct PartMember {
  std::string profile;
  std::string machine;
  std::array<std::string, machine_parts.size()> parts;
  std::vector<MeasuredTable> tables;
  TableSet set;
  std::vector<Eigen::Index> places;  // of its constants among those of all parts
  CommunicationFit fit = {};
  Eigen::MatrixXd information = {};
  Eigen::VectorXd evidence = {};  // information times where the points alone would put the constants
  Eigen::VectorXd weights = {};   // of its own factors: small where they are far from 1
};

class PartFit {
 public:
  // Throws ConfigError for a table that its machine cannot have run.
  PartFit(std::span<const MeasuredTable> tables, const ProfileStore& store);

  // `tell` is called with each round that begins, from 1.
  void solve(int rounds, const std::function<void(int)>& tell = {});

  const std::vector<PartMember>& members() const { return members_; }

  // What all machines but those of this name say of `member`'s parts.
  ConstantsPrior prior_without(const std::string& machine, const PartMember& member) const;
  // What all say of the constants of each part, by its name.
  std::map<std::string, PartProfile> parts() const;

 private:
  struct Gaussian {
    Eigen::VectorXd mean;
    Eigen::MatrixXd covariance;
  };
  struct Constant {
    std::string part;
    const CommunicationConstant* constant;
  };

  // Constants that tell of each other (AlikeParts).
  struct Kind {
    const CommunicationConstant* constant;
    std::string family;
    auto operator<=>(const Kind&) const = default;
  };
  static Kind kind_of(const Constant& constant);

  Eigen::Index place_of(const std::string& part, const CommunicationConstant& constant);
  std::set<std::string> parts_without(const std::string& machine) const;
  std::optional<Eigen::Index> place_of_stand_in(const Constant& constant,
                                                const std::set<std::string>& known) const;
  Eigen::MatrixXd usual_precision(const std::set<std::string>& known) const;
  Gaussian posterior_without(const std::string& machine) const;
  ConstantsPrior prior_of(const PartMember& member, const Gaussian& parts) const;
  Kind kind_of(const PartMember& member, Eigen::Index i) const;
  Eigen::VectorXd own_precision(const PartMember& member) const;
  void fit_members(bool is_first);
  Eigen::VectorXd squared_factors(const PartMember& member, const Gaussian& parts) const;
  void estimate_spread();

  std::vector<PartMember> members_;
  std::vector<Constant> constants_;
  std::map<std::string, std::vector<std::string>> stand_ins_;  // by part: itself, then the nearest first
  std::map<Kind, double> own_spread_;                          // of machines about their parts
};

}  // namespace lockstep

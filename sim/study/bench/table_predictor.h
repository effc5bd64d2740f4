#pragma once

// The simulator as a function from a calibration to the times of many measured points.
//
// Problem:   a fit asks for all points again and again, with other constants each time.
// Idea:      points that differ only in who measured them are one query; queries on the same ranks share a
//            scenario and, per calibration, a cluster.
// Invariant: a prediction is CollectiveBench's own; nothing here models anything.
// Cost:      on one node 30 us a setting, then 2 us a query.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/study/bench/collective_table.h"
#include "sim/study/bench/measured_tables.h"

namespace lockstep {

class TablePredictor {
 public:
  explicit TablePredictor(const ProfileStore& store) : store_(store) {}

  // The query that predicts this point as `library_version` would run it. Throws ConfigError when the machine
  // cannot.
  std::size_t add(const MeasuredTable& table, Bytes size, std::int64_t library_version);
  // Answers the queries that are wanted; the others' rows are empty.
  std::vector<CollectiveRow> predict(const Calibration& calibration, const std::vector<bool>& wanted) const;
  const Scenario& first_scenario() const { return settings_.front().scenario; }

 private:
  struct Query {
    CollectiveOp op;
    Bytes size;
    std::size_t index;
  };
  struct Setting {
    std::string key;
    Scenario scenario;
    std::vector<Query> queries;
  };
  Setting& setting_for(const MeasuredTable& table, std::int64_t library_version);

  const ProfileStore& store_;
  std::vector<Setting> settings_;
  std::size_t queries_ = 0;
};

}  // namespace lockstep

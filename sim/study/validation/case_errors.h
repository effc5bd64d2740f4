#pragma once

// What the band of a case rests on.
//
// Problem:   a band that was made from a group of measurements and is counted on the same says nothing.
// Idea:      each group is judged by the error model that was made without it; of groups that no model
//            knows, what is shipped has seen nothing.

#include <map>
#include <optional>
#include <string>

#include "sim/load/error_model_json.h"

namespace lockstep {

class CaseErrors {
 public:
  // `stated`: for all groups.
  CaseErrors(const std::optional<ErrorModel>& stated, const ProfileStore& store)
      : stated_(stated),
        without_(stated ? std::map<std::string, ErrorModel>{} : find_left_out_models(store)) {}

  // Null: as shipped.
  const ErrorModel* of(const std::string& group) const {
    if (stated_)
      return &*stated_;
    const auto found = without_.find(group);
    return found == without_.end() ? nullptr : &found->second;
  }

 private:
  std::optional<ErrorModel> stated_;
  std::map<std::string, ErrorModel> without_;  // by group
};

}  // namespace lockstep

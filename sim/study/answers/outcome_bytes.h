#pragma once

// What a task of a search found, as bytes that another process reads.
//
// Invariant: read back it is what it was, to the last bit: times and sizes are integers, and CBOR keeps a double.
// Reference: RFC 8949.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/load/load.h"
#include "sim/report/brief.h"

namespace lockstep {

std::string pack(const nlohmann::ordered_json& outcome);
nlohmann::ordered_json unpack(std::string_view bytes);

nlohmann::ordered_json record_of(const Brief& brief);
Brief brief_in(const nlohmann::ordered_json& record);

template <class T>
nlohmann::ordered_json record_of(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}
template <class T>
std::optional<T> optional_in(const nlohmann::ordered_json& record) {
  return record.is_null() ? std::nullopt : std::optional<T>(record.get<T>());
}

// Alike in all processes that are one program, were asked the same, and have read the same up to now.
std::string fingerprint_of_question(const nlohmann::ordered_json& asked, const std::vector<ReadFile>& files);

}  // namespace lockstep

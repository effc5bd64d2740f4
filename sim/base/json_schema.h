#pragma once

// What readers ask, or writers write, as JSON Schema.
//
// Idea:      every place of a record becomes a schema: its kinds, its keys, what else is allowed there.
// Invariant: what a reader accepts is valid; where the record does not know what is accepted, everything is. A key
//            that no reader asks for is not. What may be changes of a profile ("based_on") need state nothing.
// Reference: JSON Schema, draft 2020-12.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/base/json_record.h"

namespace lockstep {

// A file that is read may have null for what it leaves out; in one that is written null is told where it stands.
enum class SchemaOf : std::uint8_t { read, written };

nlohmann::ordered_json json_schema_of(const JsonRecord& record, const std::string& title,
                                      SchemaOf side = SchemaOf::read);

}  // namespace lockstep

#include "sim/study/answers/outcome_bytes.h"

#include "sim/base/fingerprint.h"
#include "sim/study/answers/program_id.h"

namespace lockstep {

using nlohmann::ordered_json;

std::string pack(const ordered_json& outcome) {
  std::string bytes;
  ordered_json::to_cbor(outcome, bytes);
  return bytes;
}

ordered_json unpack(std::string_view bytes) {
  return ordered_json::from_cbor(bytes);
}

ordered_json record_of(const Brief& brief) {
  ordered_json times = ordered_json::array();
  for (const TimePart& part : time_parts) times.push_back((brief.breakdown.*part.time).picoseconds());
  return {brief.iteration.picoseconds(),          times,
          brief.throughput.samples_per_iteration, record_of(brief.throughput.tokens_per_iteration),
          record_of(brief.throughput.mfu),        brief.memory.count()};
}

Brief brief_in(const ordered_json& record) {
  Brief brief{.iteration = Duration::picoseconds(record[0]),
              .breakdown = {},
              .throughput = {.samples_per_iteration = record[2],
                             .tokens_per_iteration = optional_in<std::int64_t>(record[3]),
                             .mfu = optional_in<double>(record[4])},
              .memory = Bytes(record[5].get<std::int64_t>())};
  for (std::size_t part = 0; part < time_parts.size(); ++part)
    brief.breakdown.*time_parts[part].time = Duration::picoseconds(record[1][part]);
  return brief;
}

std::string fingerprint_of_question(const ordered_json& asked, const std::vector<ReadFile>& files) {
  Fingerprint fingerprint;
  fingerprint.add(program_id());
  fingerprint.add(asked.dump());
  for (const ReadFile& read : files) fingerprint.add(read.value->dump());
  return fingerprint.text();
}

}  // namespace lockstep

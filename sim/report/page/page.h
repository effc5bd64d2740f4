#pragma once

// A page that needs nothing else: no font, no network; a script only to read its charts and to zoom its timeline.
//
// Problem:   figures, their words and their look change for different reasons, and names come from files of strangers.
// Idea:      templates/ holds the markup (mustache, one file a page, and the frame, tables and charts that all share);
//            a view, plain JSON, holds what they show. Whatever a view says is escaped when it is inserted; markup comes
//            from templates alone. They are compiled into the program, so that a page and what fills it are of one
//            version. A page carries the scripts of what it shows (`has_timeline`; of charts if it has any), and its
//            policy lets no others run.
// Invariant: the same bytes for the same view; no control character of a name reaches the page.
// Cost:      linear in the page; some 10 MB/s.
// Reference: mustache(5).

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lockstep {

// `body`: the template inside the frame, "plan.html". `view` has title, kind and subtitle beside what the body asks for.
std::string render_page(std::string_view body, const nlohmann::ordered_json& view);

}  // namespace lockstep

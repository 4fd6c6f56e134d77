// The words and forms of the signs that sets of `ignore` cover.
#pragma once

#include <string_view>

namespace ciwrap {

enum class Quantity { time, memory };

// Whether a sign may begin here, by two letters or the form of a number: most words begin none.
bool may_begin_sign(std::string_view rest);

bool is_among(char c, std::string_view characters);

// Each of these takes something off the front of a text; if it is not there, what `rest` is left as
// does not matter, but for those that say so. Whether it was there.

bool take_date(std::string_view& rest);          // 2026-11-22, 22 Nov 2026; else rest is as it was
bool take_clock(std::string_view& rest);         // 12:30:01
bool take_padded_clock(std::string_view& rest);  // 23: 5:20, with blanks for leading zeros
bool take_minute_name(std::string_view& rest);   // at, and blanks
bool take_minute(std::string_view& rest);        // 16h28
bool take_address(std::string_view& rest);       // 10.0.0.17
// CPU time, memory; else rest is as it was.
bool take_quantity_name(std::string_view& rest, Quantity quantity);
bool take_process_name(std::string_view& rest);  // pid; else rest is as it was
bool take_host_name(std::string_view& rest);     // hostname, hostname =, host:
// [s], (kbytes), in seconds; else rest is as it was.
bool take_unit(std::string_view& rest, Quantity quantity);
// 3.2 s, 1m23.45s, 12 MB: numbers with a unit behind each; else rest is as it was.
bool take_measure(std::string_view& rest, Quantity quantity);
bool take_duration(std::string_view& rest);  // 0:00:03, 12:30:01.5; else rest is as it was

// And these, what may be there: .125Z or +01:00 behind a clock, and `per MD step`, words that
// connect a name with its number.
void take_clock_end(std::string_view& rest);
void take_connector(std::string_view& rest);

}  // namespace ciwrap

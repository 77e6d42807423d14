#pragma once

namespace ingot::cli {

// Parses the command line and runs the command: all options of all commands are declared here.
// Returns the process's exit status. Prints one line to stderr for bad usage or input.
int run(int argc, const char* const* argv);

}  // namespace ingot::cli

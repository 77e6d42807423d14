#include "cli/command_line.h"

int main(int argc, char** argv) { return ingot::cli::run(argc, argv); }

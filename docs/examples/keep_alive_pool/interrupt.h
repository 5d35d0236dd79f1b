#pragma once

namespace pool {

/// From now on the first Ctrl-C only sets a flag; a second one ends the program at once.
void catch_interrupts();
bool interrupted();

}  // namespace pool

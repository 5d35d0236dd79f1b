// Compiles a block of docs/hosts.md.

#include BLOCK

#pragma once

#include "brpc_header_block.h"

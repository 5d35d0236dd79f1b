#pragma once

#include "tests/host/stand_in/brpc.h"

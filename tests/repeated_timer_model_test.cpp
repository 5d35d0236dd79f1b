#include "repeated_timer_support.h"

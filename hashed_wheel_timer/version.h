#pragma once

/// The version of these headers, for the preprocessor. Before 1.0 each minor version may break programs.
#define HWT_VERSION_MAJOR 0
/// Its second number.
#define HWT_VERSION_MINOR 3
/// Its third number.
#define HWT_VERSION_PATCH 0

/// 1.2.3 is 10203.
#define HWT_VERSION (HWT_VERSION_MAJOR * 10000 + HWT_VERSION_MINOR * 100 + HWT_VERSION_PATCH)

/// "1.2.3".
#define HWT_VERSION_STRING "0.3.0"

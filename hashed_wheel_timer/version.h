// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The major version of these headers. Before 1.0 each minor version may break programs.
#define HWT_VERSION_MAJOR 0
/// The minor version.
#define HWT_VERSION_MINOR 4
/// The patch version.
#define HWT_VERSION_PATCH 0

/// The version as a number, which the preprocessor can compare: 10203 for 1.2.3.
#define HWT_VERSION (HWT_VERSION_MAJOR * 10000 + HWT_VERSION_MINOR * 100 + HWT_VERSION_PATCH)

/// The version as text: "1.2.3" for 1.2.3.
#define HWT_VERSION_STRING "0.4.0"

// The name and the text of one short example.

#include "common/page.h"

const char* const common::page_name = PAGE_NAME;
const char* const common::page_text = PAGE_TEXT;

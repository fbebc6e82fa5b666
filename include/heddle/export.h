/* What libheddle.so exports. Everything else in it is hidden. */
#ifndef HEDDLE_EXPORT_H
#define HEDDLE_EXPORT_H

#if defined(__GNUC__)
#define HEDDLE_API __attribute__((visibility("default")))
/* For a class nested in one that is exported, which would be exported with it. */
#define HEDDLE_LOCAL __attribute__((visibility("hidden")))
#else
#define HEDDLE_API
#define HEDDLE_LOCAL
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs of the headers from objects of Java and back, field by field as their tables say. Classes
 * and field numbers are looked up at first use. */
#include "bindings/java/native/structs.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* The class of a struct. */
typedef struct {
  jclass type;
  jmethodID make;
  jfieldID fields[SHW_FIELDS_MAX];
} bound_class;

static _Atomic(bound_class*) classes[SHW_STRUCT_COUNT];

/* Bytes of an element in the array of Java that has the field; 16 bytes of a digest are 16. */
static uint8_t java_width(const shw_field* f) {
  return f->kind == SHW_FIELD_ARRAY && (f->width == 4 || f->width == 8) ? f->width : 1;
}

static const char* signature_of(const shw_field* f) {
  switch (f->kind) {
    case SHW_FIELD_INT:
    case SHW_FIELD_UINT:
      return f->width == 8 ? "J" : "I";
    case SHW_FIELD_HANDLE:
    case SHW_FIELD_CALLBACK:
      return "J";
    default:
      return java_width(f) == 8 ? "[J" : java_width(f) == 4 ? "[I" : "[B";
  }
}

static int bind(JNIEnv* env, const shw_struct* type, bound_class* into) {
  char name[96], make[4 * SHW_FIELDS_MAX] = "(";
  (void)snprintf(name, sizeof name, "io/shardwright/internal/Structs$%s", type->camel);
  jclass local = (*env)->FindClass(env, name);
  into->type = local != NULL ? (*env)->NewGlobalRef(env, local) : NULL;
  for (size_t i = 0; into->type != NULL && i < type->field_count; ++i) {
    const shw_field* f = &type->fields[i];
    into->fields[i] = (*env)->GetFieldID(env, local, f->camel, signature_of(f));
    if (into->fields[i] == NULL) return -1;
    strcat(make, signature_of(f));
  }
  strcat(make, ")V");
  into->make = into->type != NULL ? (*env)->GetMethodID(env, local, "<init>", make) : NULL;
  return into->make != NULL ? 0 : -1;
}

/* NULL with an exception pending. Threads that come first together bind alike; one of them wins. */
static const bound_class* class_of(JNIEnv* env, const shw_struct* type) {
  bound_class* known = atomic_load(&classes[type->number]);
  if (known != NULL) return known;
  bound_class* made = calloc(1, sizeof *made);
  if (made == NULL) {
    shw_java_throw(env, SHW_RESOURCE_EXHAUSTED, NULL);
    return NULL;
  }
  const int failed = bind(env, type, made) < 0;
  if (!failed && atomic_compare_exchange_strong(&classes[type->number], &known, made)) return made;
  if (made->type != NULL) (*env)->DeleteGlobalRef(env, made->type);
  free(made);
  return failed ? NULL : known;
}

int shw_java_struct_bind(JNIEnv* env, const shw_struct* type) {
  return class_of(env, type) != NULL ? 0 : -1;
}

/* ---- from Java ---- */

static void* elements_of(JNIEnv* env, jarray array, uint8_t width) {
  switch (width) {
    case 8:
      return (*env)->GetLongArrayElements(env, array, NULL);
    case 4:
      return (*env)->GetIntArrayElements(env, array, NULL);
    default:
      return (*env)->GetByteArrayElements(env, array, NULL);
  }
}

void shw_java_struct_free(JNIEnv* env, ShwJavaHeld* held) {
  while (held->count > 0) {
    const int i = --held->count;
    if (held->widths[i] == 8)
      (*env)->ReleaseLongArrayElements(env, held->arrays[i], held->elements[i], JNI_ABORT);
    else if (held->widths[i] == 4)
      (*env)->ReleaseIntArrayElements(env, held->arrays[i], held->elements[i], JNI_ABORT);
    else
      (*env)->ReleaseByteArrayElements(env, held->arrays[i], held->elements[i], JNI_ABORT);
    (*env)->DeleteLocalRef(env, held->arrays[i]);
  }
}

static void set(void* into, size_t offset, const void* value, size_t size) {
  memcpy((char*)into + offset, value, size);
}

/* Elements of an array field, counted in bytes; -1 with an exception pending, -2 for null. */
static int64_t read_array(JNIEnv* env, jobject given, jfieldID id, const shw_field* f, void* into,
                          ShwJavaHeld* held) {
  jarray array = (*env)->GetObjectField(env, given, id);
  if (array == NULL) return -2;
  const uint8_t width = java_width(f);
  void* elements = elements_of(env, array, width);
  if (elements == NULL) return -1;
  held->arrays[held->count] = array;
  held->elements[held->count] = elements;
  held->widths[held->count++] = width;
  set(into, f->offset, &elements, sizeof elements);
  return (int64_t)(*env)->GetArrayLength(env, array) * width;
}

static int refuse(JNIEnv* env, const shw_field* f, const char* reason) {
  char text[160];
  const int size = snprintf(text, sizeof text, "field %s %s", f->camel, reason);
  shw_error* err = NULL;
  const shw_status status =
      shw_error_create(SHW_INVALID_ARGUMENT, text, (uint64_t)size, NULL, 0, NULL, &err);
  shw_java_throw(env, status, err);
  return -1;
}

/* A callback of this type that finds the object of Java in its user. */
static void (*callback_of(const char* type))(void) {
  return strcmp(type, "shw_progress_fn") == 0 ? (void (*)(void))shw_java_progress : NULL;
}

/* Bytes of an array that was given, -2 for other fields, -1 with an exception pending. */
static int64_t read_field(JNIEnv* env, jobject given, jfieldID id, const shw_field* f, void* into,
                          ShwJavaHeld* held) {
  jlong number = 0;
  int64_t bytes = -2;
  switch (f->kind) {
    case SHW_FIELD_INT:
    case SHW_FIELD_UINT:
      number = f->width == 8 ? (*env)->GetLongField(env, given, id)
                             : (*env)->GetIntField(env, given, id);
      set(into, f->offset, &number, f->width); /* little-endian, as all that the library runs on */
      return -2;
    case SHW_FIELD_HANDLE:
      number = (*env)->GetLongField(env, given, id);
      set(into, f->offset, &number, sizeof(void*));
      return -2;
    case SHW_FIELD_CALLBACK:
      number = (*env)->GetLongField(env, given, id);
      set(into, f->offset, &number, sizeof(void*));
      void (*function)(void) = number != 0 ? callback_of(f->handle) : NULL;
      set(into, f->other, &function, sizeof function);
      return -2;
    default:
      bytes = read_array(env, given, id, f, into, held);
      break;
  }
  if (bytes >= 0 && f->kind == SHW_FIELD_BYTES) set(into, f->other, &bytes, sizeof bytes);
  if (bytes >= 0 && f->kind == SHW_FIELD_TEXT) {
    const char* text = shw_field_pointer(into, f);
    if (bytes == 0 || text[bytes - 1] != '\0') return refuse(env, f, "does not end with NUL");
  }
  return f->kind == SHW_FIELD_ARRAY || bytes == -1 ? bytes : -2;
}

static int check_cuts(JNIEnv* env, const shw_field* f, const uint64_t* cuts, uint64_t count) {
  if (count == 0 || cuts[0] != 0) return refuse(env, f, "does not begin with 0");
  for (uint64_t i = 1; i < count; ++i) {
    if (cuts[i] < cuts[i - 1] || cuts[i] > INT64_MAX / 64) return refuse(env, f, "does not ascend");
  }
  return 0;
}

/* The cuts first: the lengths of the other arrays follow from them. */
static int check_arrays(JNIEnv* env, const shw_struct* type, const void* into,
                        const int64_t* bytes) {
  for (int cuts = 1; cuts >= 0; --cuts) {
    for (size_t i = 0; i < type->field_count; ++i) {
      const shw_field* f = &type->fields[i];
      if (bytes[i] < 0 || f->cuts != cuts) continue;
      const uint64_t expected = f->length(into), given = (uint64_t)bytes[i];
      if (given % f->width != 0 || given / f->width != expected)
        return refuse(env, f, "does not have the length that the other fields say");
      if (cuts && check_cuts(env, f, shw_field_pointer(into, f), expected) < 0) return -1;
    }
  }
  return 0;
}

const void* shw_java_struct_read(JNIEnv* env, jobject given, const shw_struct* type, void* into,
                                 ShwJavaHeld* held) {
  const uint32_t size = type->size;
  int64_t bytes[SHW_FIELDS_MAX];
  memset(into, 0, size);
  memcpy(into, &size, sizeof size);
  if (given == NULL) return NULL;
  const bound_class* known = class_of(env, type);
  if (known == NULL || (*env)->EnsureLocalCapacity(env, type->pointer_count + 4) != 0) return NULL;
  for (size_t i = 0; i < type->field_count; ++i) {
    bytes[i] = read_field(env, given, known->fields[i], &type->fields[i], into, held);
    if (bytes[i] == -1) return NULL;
  }
  return check_arrays(env, type, into, bytes) == 0 ? into : NULL;
}

/* ---- to Java ---- */

/* A new array of Java; NULL with an exception pending. */
static jarray array_of(JNIEnv* env, const void* data, uint64_t count, uint8_t width) {
  if (count * width > INT32_MAX) return shw_java_bytes(env, data, count * width); /* throws */
  const jsize length = (jsize)count;
  if (width == 8) return shw_java_longs(env, data, count);
  if (width != 4) return shw_java_bytes(env, data, count);
  jintArray array = (*env)->NewIntArray(env, length);
  if (array != NULL && length > 0) (*env)->SetIntArrayRegion(env, array, 0, length, data);
  return array;
}

/* The array of a field: null where it says nothing, empty where there can be nothing to say. -1
 * with an exception pending. */
static int write_array(JNIEnv* env, const shw_field* f, const void* from, jobject* out) {
  const void* data = shw_field_pointer(from, f);
  uint64_t count = 0;
  const uint64_t* cuts = NULL;
  if (f->kind == SHW_FIELD_TEXT) count = data != NULL ? strlen(data) : 0;
  if (f->kind == SHW_FIELD_BYTES) memcpy(&count, (const char*)from + f->other, sizeof count);
  if (f->kind == SHW_FIELD_ARRAY) {
    count = f->length(from) * (f->width / java_width(f));
    if (f->other) memcpy(&cuts, (const char*)from + f->other, sizeof cuts);
    if (data == NULL && (count != 0 || (f->other && cuts == NULL))) return 0;
  }
  *out = array_of(env, data, count, java_width(f));
  return *out != NULL ? 0 : -1;
}

/* Value of a field; -1 with an exception pending. */
static int write_field(JNIEnv* env, const shw_field* f, const void* from, jvalue* out) {
  out->j = 0;
  if (f->kind == SHW_FIELD_HANDLE || f->kind == SHW_FIELD_CALLBACK)
    return 0; /* of arguments only */
  if (f->kind != SHW_FIELD_INT && f->kind != SHW_FIELD_UINT)
    return write_array(env, f, from, &out->l);
  if (f->width == 8)
    out->j = (jlong)shw_field_number(from, f);
  else
    out->i = (jint)shw_field_number(from, f);
  return 0;
}

jobject shw_java_struct_write(JNIEnv* env, const shw_struct* type, const void* from) {
  const bound_class* known = class_of(env, type);
  jvalue values[SHW_FIELDS_MAX];
  if (known == NULL || (*env)->EnsureLocalCapacity(env, type->pointer_count + 4) != 0) return NULL;
  size_t written = 0;
  while (written < type->field_count &&
         write_field(env, &type->fields[written], from, &values[written]) == 0)
    ++written;
  jobject made = written == type->field_count
                     ? (*env)->NewObjectA(env, known->type, known->make, values)
                     : NULL;
  for (size_t i = 0; i < written; ++i) {
    const uint8_t kind = type->fields[i].kind;
    if (kind == SHW_FIELD_TEXT || kind == SHW_FIELD_BYTES || kind == SHW_FIELD_ARRAY)
      (*env)->DeleteLocalRef(env, values[i].l);
  }
  return made;
}

void* shw_java_struct_list(JNIEnv* env, const shw_struct* type, uint64_t count) {
  const uint32_t size = type->size;
  char* list = count <= INT32_MAX ? calloc(count + 1, size) : NULL;
  if (list == NULL) shw_java_throw(env, SHW_RESOURCE_EXHAUSTED, NULL);
  for (uint64_t i = 0; list != NULL && i < count; ++i) memcpy(list + i * size, &size, sizeof size);
  return list;
}

/* Numbers of one field of all structs as an array of Java; NULL with an exception pending. */
static jarray column_of(JNIEnv* env, const shw_struct* type, const shw_field* f, const char* from,
                        uint64_t count) {
  const uint8_t width = f->width == 8 ? 8 : 4;
  char* values = malloc((size_t)count * width + 1);
  if (values == NULL) {
    shw_java_throw(env, SHW_RESOURCE_EXHAUSTED, NULL);
    return NULL;
  }
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t number = shw_field_number(from + i * type->size, f);
    memcpy(values + i * width, &number, width);
  }
  jarray array = array_of(env, values, count, width);
  free(values);
  return array;
}

jobject shw_java_struct_write_columns(JNIEnv* env, const shw_struct* type, const void* from,
                                      uint64_t count) {
  char name[96];
  (void)snprintf(name, sizeof name, "io/shardwright/internal/Structs$%sColumns", type->camel);
  jclass class = (*env)->FindClass(env, name);
  jmethodID make = class != NULL ? (*env)->GetMethodID(env, class, "<init>", "()V") : NULL;
  jobject made = make != NULL ? (*env)->NewObject(env, class, make) : NULL;
  for (size_t i = 0; made != NULL && i < type->field_count; ++i) {
    const shw_field* f = &type->fields[i];
    jfieldID id = (*env)->GetFieldID(env, class, f->camel, f->width == 8 ? "[J" : "[I");
    jarray column = id != NULL ? column_of(env, type, f, from, count) : NULL;
    if (column == NULL) return NULL;
    (*env)->SetObjectField(env, made, id, column);
    (*env)->DeleteLocalRef(env, column);
  }
  return made;
}

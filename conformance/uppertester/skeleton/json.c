/* JSON, as the runner writes it: without spaces. */
#include "tester.h"

#include <stdlib.h>
#include <string.h>

static const char *behind(const char *p)
{
	int depth = 0;
	do {
		if (*p == '"') {
			for (p++; *p && *p != '"'; p++)
				p += *p == '\\' && p[1];
			p += *p == '"';
		} else if (*p && strchr("{[]},:", *p)) {
			depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
			p++;
		} else {
			p += strcspn(p, "{[]},:\"");
		}
	} while (*p && depth > 0);
	return p;
}

size_t length(const char *value) { return (size_t)(behind(value) - value); }

const char *field(const char *object, const char *key)
{
	const char *p = object && *object == '{' ? object + 1 : "";
	while (*p == '"') {
		const char *value = behind(p) + 1;
		if ((size_t)(value - p) == strlen(key) + 3 && !strncmp(p + 1, key, strlen(key)))
			return value;
		p = behind(value);
		p += *p == ',';
	}
	return NULL;
}

const char *item(const char *list, int i)
{
	const char *p = list && *list == '[' ? list + 1 : "";
	for (; *p && *p != ']'; p += *p == ',') {
		if (i-- == 0)
			return p;
		p = behind(p);
	}
	return NULL;
}

long long num(const char *object, const char *key)
{
	const char *v = field(object, key);
	if (!v)
		return 0;
	return *v == 't' ? 1 : *v == '-' ? strtoll(v, NULL, 10) : (long long)strtoull(v, NULL, 10);
}

size_t string(const char *object, const char *key, char *to, size_t room)
{
	const char *v = field(object, key);
	size_t n = v && *v == '"' ? length(v) - 2 : 0;
	n = n < room ? n : room - 1;
	memcpy(to, v ? v + 1 : "", n);
	to[n] = 0;
	return n;
}

const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t octets(const char *object, const char *key, uint8_t *to, size_t room)
{
	const char *v = field(object, key), *d;
	uint32_t bits = 0;
	size_t n = 0;
	for (int k = 0; v && *v == '"' && v[k + 1] && (d = strchr(digits, v[k + 1])); k++) {
		bits = bits << 6 | (uint32_t)(d - digits);
		if (k % 4 && n < room)
			to[n++] = (uint8_t)(bits >> (6 - 2 * (k % 4)));
	}
	return n;
}

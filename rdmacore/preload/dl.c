/* dlsym and dlvsym, for programs that look libibverbs' functions up in a library that they have opened: those get ours, too.
   Everything else goes on to the dlsym behind ours by a jump, which leaves the caller's return address where that looks for
   it: RTLD_NEXT and RTLD_DEFAULT depend on who calls. */
#include "verbs.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#ifdef __SANITIZE_ADDRESS__ /* its own runtime calls dlsym before it can run a function of ours */
void *v_dlsym(void *handle, const char *name) { return dlsym(handle, name); }
#else

/* What the jumps need. */
__attribute__((visibility("hidden"))) void *_Atomic v_real_dlsym, *_Atomic v_real_dlvsym;

/* The first caller may be a sanitizer's runtime that is looking for the functions behind its own. So until v_real_dlsym is known,
   nothing is called here that one stands before: not even strcmp. */
static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* The loaded objects: glibc's dynamic loader has the first name, musl's the second. */
extern struct r_debug _r_debug __attribute__((weak));
extern struct r_debug *_dl_debug_addr __attribute__((weak));
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden"))); /* ours */

static const struct link_map *objects(void)
{
	if (&_r_debug)
		return _r_debug.r_map;
	return &_dl_debug_addr && _dl_debug_addr ? _dl_debug_addr->r_map : NULL;
}

/* The tables of an object, or NULL for what it does not have. */
struct object {
	const ElfW(Sym) * symbols;
	const char *names;
	const uint32_t *hash, *gnu_hash;
};

/* musl does not relocate what is in the dynamic section, nor is the vDSO's. */
static const void *at(const struct link_map *m, ElfW(Addr) p) { return (const void *)(p < m->l_addr ? p + m->l_addr : p); }

static struct object object(const struct link_map *m)
{
	struct object o = {0};
	for (const ElfW(Dyn) *d = m->l_ld; d && d->d_tag != DT_NULL; d++)
		switch (d->d_tag) {
		case DT_SYMTAB: o.symbols = at(m, d->d_un.d_ptr); break;
		case DT_STRTAB: o.names = at(m, d->d_un.d_ptr); break;
		case DT_HASH: o.hash = at(m, d->d_un.d_ptr); break;
		case DT_GNU_HASH: o.gnu_hash = at(m, d->d_un.d_ptr); break;
		}
	return o;
}

/* How many symbols there are: the last of the chain that begins last, with the second kind of hash. */
static uint32_t count(const struct object *o)
{
	if (o->hash)
		return o->hash[1];
	if (!o->gnu_hash)
		return 0;
	uint32_t buckets = o->gnu_hash[0], first = o->gnu_hash[1], last = 0;
	const uint32_t *bucket = o->gnu_hash + 4 + o->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4), *chain = bucket + buckets;
	for (uint32_t k = 0; k < buckets; k++)
		if (bucket[k] > last)
			last = bucket[k];
	if (last < first)
		return 0;
	while (!(chain[last - first] & 1))
		last++;
	return last + 1;
}

static void look(const struct link_map *m)
{
	struct object o = object(m);
	uint32_t n = o.symbols && o.names ? count(&o) : 0;
	for (uint32_t k = 0; k < n; k++) {
		const ElfW(Sym) *s = &o.symbols[k];
		if (s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) != STT_FUNC)
			continue;
		void *f = (void *)(m->l_addr + s->st_value);
		if (!v_real_dlsym && same(o.names + s->st_name, "dlsym"))
			v_real_dlsym = f;
		if (!v_real_dlvsym && same(o.names + s->st_name, "dlvsym"))
			v_real_dlvsym = f;
	}
}

/* In what was loaded behind us; or, when there is none (musl's libc is before us), in all that we are not. */
static void find(void)
{
	for (int pass = 0; pass < 2; pass++) {
		bool behind = pass == 1;
		for (const struct link_map *m = objects(); m && !v_real_dlsym; m = m->l_next)
			if (m->l_ld == _DYNAMIC)
				behind = true;
			else if (behind)
				look(m);
	}
}

void *v_dlsym(void *handle, const char *name)
{
	if (!v_real_dlsym)
		find();
	return ((void *(*)(void *, const char *))v_real_dlsym)(handle, name);
}

/* What to answer at once, or NULL: the jump goes on. The first version of libibverbs has other structs. */
__attribute__((visibility("hidden"), used)) void *v_stand_in(void *handle, const char *name, const char *version)
{
	static const struct {
		const char *name;
		void *ours;
	} all[] = {{"ibv_open_device", (void *)ibv_open_device}, {"ibv_qp_to_qp_ex", (void *)ibv_qp_to_qp_ex}, {"ibv_rereg_mr", (void *)ibv_rereg_mr}};
	if (!v_real_dlsym)
		find();
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (same(name, all[i].name) && handle != RTLD_NEXT && !(version && same(version, "IBVERBS_1.0"))) {
			void *theirs = v_dlsym(handle, name); /* of a second libibverbs, behind which ours does not go: as it is */
			return theirs && theirs == v_next(name, NULL) ? all[i].ours : NULL;
		}
	return NULL;
}

/* Both have the third argument saved; dlsym has none. */
#if defined(__x86_64__)
#define STAND_IN(name, version)                                                                                            \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"                                       \
		"\t.cfi_startproc\n\tendbr64\n\tpushq %rdi\n\tpushq %rsi\n\tpushq %rdx\n\t.cfi_def_cfa_offset 32\n"          \
		"\t" version "\n\tcall v_stand_in\n"                                                                         \
		"\tpopq %rdx\n\tpopq %rsi\n\tpopq %rdi\n\t.cfi_def_cfa_offset 8\n"                                           \
		"\ttestq %rax, %rax\n\tjz 1f\n\tret\n1:\tjmp *v_real_" #name "(%rip)\n"                                      \
		"\t.cfi_endproc\n.size " #name ", .-" #name "\n")
STAND_IN(dlsym, "xorl %edx, %edx");
#elif defined(__aarch64__)
#define STAND_IN(name, version)                                                                                            \
	__asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"                                       \
		"\t.cfi_startproc\n\thint #34\n\tstp x29, x30, [sp, #-48]!\n\t.cfi_def_cfa_offset 48\n"                      \
		"\t.cfi_offset 29, -48\n\t.cfi_offset 30, -40\n\tstp x0, x1, [sp, #16]\n\tstr x2, [sp, #32]\n"               \
		"\t" version "\n\tbl v_stand_in\n\tmov x16, x0\n"                                                            \
		"\tldr x2, [sp, #32]\n\tldp x0, x1, [sp, #16]\n\tldp x29, x30, [sp], #48\n\t.cfi_def_cfa_offset 0\n"         \
		"\tcbz x16, 1f\n\tmov x0, x16\n\tret\n"                                                                      \
		"1:\tadrp x16, v_real_" #name "\n\tldr x16, [x16, #:lo12:v_real_" #name "]\n\tbr x16\n"                      \
		"\t.cfi_endproc\n.size " #name ", .-" #name "\n")
STAND_IN(dlsym, "mov x2, xzr");
#endif
STAND_IN(dlvsym, "");
#endif

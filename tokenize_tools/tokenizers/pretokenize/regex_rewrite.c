/* SPDX-License-Identifier: MIT */
/*
 * regex_rewrite.c - rewrites a pattern in one pass from front to back.
 *
 * Each character and each class becomes a set of code points: a class is collected as a bitmap and added to the sets as
 * ranges. Groups, alternatives, and quantifiers mean the same in all engines and are copied.
 */
#include "regex_rewrite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "text/code_point.h"
#include "unicode/code_sets.h"

#define GROUPS_MOST 64
#define CLASSES_MOST 8 /* levels of classes inside of classes */

struct set {
    uint64_t words[CODES / 64];
};

struct rewriter {
    const char *pattern, *at, *end;
    enum regex_dialect dialect;
    struct bytes_buffer *into;
    struct regex_sets *sets;
    struct regex_fault *fault;
    bool folds[GROUPS_MOST]; /* by depth of groups: (?i) applies */
    uint32_t depth;
    uint32_t classes;                                               /* open classes, not counting the outermost */
    struct set *set;                                                /* the set that is being collected */
    enum { NOTHING_BEFORE, ATOM_BEFORE, QUANTIFIED_BEFORE } before; /* target of a quantifier */
};

/* Sets the fault, unless there is one already, to the current position. Returns false. */
static bool refuse(struct rewriter *r, const char *reason)
{
    if (!r->fault->reason) {
        r->fault->offset = (size_t)(r->at - r->pattern);
        r->fault->reason = reason;
    }
    return false;
}

/* Appends to the rewritten pattern. */
static bool copy(struct rewriter *r, const char *text)
{
    return bytes_append(r->into, text, strlen(text));
}

/* ---- sets ---- */

static void set_add(struct set *set, uint32_t first, uint32_t last)
{
    for (uint32_t code = first; code <= last;) {
        if (code % 64 == 0 && last - code >= 63) {
            set->words[code / 64] = UINT64_MAX;
            code += 64;
        } else {
            set->words[code / 64] |= UINT64_C(1) << code % 64;
            code++;
        }
    }
}

static bool set_has(const struct set *set, uint32_t code)
{
    return set->words[code / 64] >> code % 64 & 1;
}

static void set_invert(struct set *set)
{
    for (size_t i = 0; i < CODES / 64; i++)
        set->words[i] = ~set->words[i];
}

/* Adds a set of code points or, if `inverted`, all outside of it. */
static void set_add_codes(struct set *set, const struct code_set *codes, bool inverted)
{
    for (uint32_t code = 0, end; code < CODES; code = end) {
        end = CODES;
        if (code_set_run(codes, code, &end) != inverted)
            set_add(set, code, end - 1);
    }
}

static void set_add_spaces(struct set *set, bool inverted)
{
    for (uint32_t code = 0; code < 0x3001; code++)
        if (code_is_space(code) != inverted)
            set_add(set, code, code);
    if (inverted)
        set_add(set, 0x3001, CODES - 1);
}

/* Adds the other case of the ASCII letters in the set, and the two other characters that fold to ASCII letters. */
static void set_fold(struct set *set)
{
    for (uint32_t code = 'a'; code <= 'z'; code++)
        if (set_has(set, code) || set_has(set, code - 32)) {
            set_add(set, code, code);
            set_add(set, code - 32, code - 32);
            if (code == 's')
                set_add(set, 0x17F, 0x17F);
            if (code == 'k')
                set_add(set, 0x212A, 0x212A);
        }
}

/* Adds the set to the pattern's sets, without surrogates, and appends its marker. */
static bool set_write(struct rewriter *r)
{
    struct set *set = r->set;
    for (uint32_t code = 0xD800; code < 0xE000; code += 64)
        set->words[code / 64] = 0;
    regex_set_begin(r->sets);
    for (uint32_t code = 0; code < CODES;) {
        const uint64_t word = set->words[code / 64] >> code % 64;
        if (!word) {
            code = (code / 64 + 1) * 64;
            continue;
        }
        code += (uint32_t)__builtin_ctzll(word);
        uint32_t last = code;
        while (last + 1 < CODES && set_has(set, last + 1))
            last += (last + 1) % 64 == 0 && set->words[(last + 1) / 64] == UINT64_MAX ? 64 : 1;
        if (!regex_set_range(r->sets, code, last))
            return false;
        code = last + 1;
    }
    return regex_set_end(r->sets, r->into);
}

static bool code_write(struct rewriter *r, uint32_t code)
{
    regex_set_begin(r->sets);
    return regex_set_range(r->sets, code, code) && regex_set_end(r->sets, r->into);
}

/* ---- escapes ---- */

/* Parses exactly `most` hexadecimal digits or, in braces, 1 to 8. */
static bool parse_hex(struct rewriter *r, int most, uint32_t *code)
{
    const bool braces = r->at < r->end && *r->at == '{';
    uint32_t value = 0;
    int digits = 0;
    r->at += braces;
    for (; r->at < r->end && digits < (braces ? 8 : most) && hex_digit(*r->at) >= 0; r->at++, digits++)
        value = value << 4 | (uint32_t)hex_digit(*r->at);
    if (!digits || (!braces && digits < most) || (braces && (r->at == r->end || *r->at++ != '}')))
        return refuse(r, "there are too few or too many hexadecimal digits");
    if (value >= CODES || (value >= 0xD800 && value < 0xE000) || (!braces && most == 2 && value >= 0x80))
        return refuse(r, "the number is not a character");
    *code = value;
    return true;
}

static bool same_name(const char *name, size_t bytes, const char *known)
{
    if (strlen(known) != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        if ((name[i] | 32) != (known[i] | 32))
            return false;
    return true;
}

/* clang-format off */
static const struct {
    const char *name;
    enum code_set_name first, last;
} properties[] = {
    {"L", CODE_LU, CODE_LO},   {"M", CODE_MN, CODE_ME},   {"N", CODE_ND, CODE_NO},   {"P", CODE_PC, CODE_PO},
    {"S", CODE_SM, CODE_SO},   {"Z", CODE_ZS, CODE_ZP},   {"C", CODE_CC, CODE_CN},   {"Lu", CODE_LU, CODE_LU},
    {"Ll", CODE_LL, CODE_LL},  {"Lt", CODE_LT, CODE_LT},  {"Lm", CODE_LM, CODE_LM},  {"Lo", CODE_LO, CODE_LO},
    {"Mn", CODE_MN, CODE_MN},  {"Mc", CODE_MC, CODE_MC},  {"Me", CODE_ME, CODE_ME},  {"Nd", CODE_ND, CODE_ND},
    {"Nl", CODE_NL, CODE_NL},  {"No", CODE_NO, CODE_NO},  {"Pc", CODE_PC, CODE_PC},  {"Pd", CODE_PD, CODE_PD},
    {"Ps", CODE_PS, CODE_PS},  {"Pe", CODE_PE, CODE_PE},  {"Pi", CODE_PI, CODE_PI},  {"Pf", CODE_PF, CODE_PF},
    {"Po", CODE_PO, CODE_PO},  {"Sm", CODE_SM, CODE_SM},  {"Sc", CODE_SC, CODE_SC},  {"Sk", CODE_SK, CODE_SK},
    {"So", CODE_SO, CODE_SO},  {"Zs", CODE_ZS, CODE_ZS},  {"Zl", CODE_ZL, CODE_ZL},  {"Zp", CODE_ZP, CODE_ZP},
    {"Cc", CODE_CC, CODE_CC},  {"Cf", CODE_CF, CODE_CF},  {"Co", CODE_CO, CODE_CO},  {"Cn", CODE_CN, CODE_CN},
    {"Arabic", CODE_ARABIC, CODE_ARABIC},             {"Armenian", CODE_ARMENIAN, CODE_ARMENIAN},
    {"Bengali", CODE_BENGALI, CODE_BENGALI},          {"Bopomofo", CODE_BOPOMOFO, CODE_BOPOMOFO},
    {"Cyrillic", CODE_CYRILLIC, CODE_CYRILLIC},       {"Devanagari", CODE_DEVANAGARI, CODE_DEVANAGARI},
    {"Georgian", CODE_GEORGIAN, CODE_GEORGIAN},       {"Greek", CODE_GREEK, CODE_GREEK},
    {"Han", CODE_HAN, CODE_HAN},                      {"Hangul", CODE_HANGUL, CODE_HANGUL},
    {"Hebrew", CODE_HEBREW, CODE_HEBREW},             {"Hiragana", CODE_HIRAGANA, CODE_HIRAGANA},
    {"Katakana", CODE_KATAKANA, CODE_KATAKANA},       {"Khmer", CODE_KHMER, CODE_KHMER},
    {"Latin", CODE_LATIN, CODE_LATIN},                {"Tamil", CODE_TAMIL, CODE_TAMIL},
    {"Thai", CODE_THAI, CODE_THAI},
};
/* clang-format on */

/* After \p or \P: parses the name and adds the set. */
static bool parse_property(struct rewriter *r, bool inverted)
{
    const char *name = r->at;
    size_t bytes = 1;
    if (r->at < r->end && *r->at == '{') {
        name = ++r->at;
        while (r->at < r->end && *r->at != '}')
            r->at++;
        if (r->at == r->end)
            return refuse(r, "\\p{ lacks its }");
        bytes = (size_t)(r->at++ - name);
        if (bytes && *name == '^') {
            inverted = !inverted;
            name++;
            bytes--;
        }
    } else if (r->at == r->end || r->dialect == REGEX_ONIGURUMA) {
        return refuse(r, "\\p is not followed by a name in braces");
    } else {
        r->at++;
    }
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
        if (!same_name(name, bytes, properties[i].name))
            continue;
        struct code_set codes = code_sets[properties[i].first];
        for (uint32_t one = properties[i].first; one < properties[i].last; one++)
            codes.categories |= code_sets[one + 1].categories;
        set_add_codes(r->set, &codes, inverted);
        return true;
    }
    r->at = name;
    return refuse(r, "tokmap does not know the exact set of this \\p{...}");
}

/* Adds \w or \W. Oniguruma's \w has no joiners, and it contains these characters only outside of brackets. */
static void word_add(struct rewriter *r, bool inverted, bool in_brackets)
{
    static const uint32_t more[] = {0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE};
    struct set *set = r->set;
    set_add_codes(set, &code_sets[r->dialect == REGEX_RUST ? CODE_WORD_RUST : CODE_WORD], inverted);
    for (size_t i = 0; i < sizeof more / sizeof more[0] && r->dialect != REGEX_RUST && !in_brackets; i++)
        if (inverted)
            set->words[more[i] / 64] &= ~(UINT64_C(1) << more[i] % 64);
        else
            set_add(set, more[i], more[i]);
}

enum escape { ESCAPE_FAULT, ESCAPE_CODE, ESCAPE_SET, ESCAPE_ANCHOR };

/* After a backslash: parses a character, which goes to *code; a set, which is added to r->set; or an anchor, which the
 * caller handles. */
static enum escape parse_escape(struct rewriter *r, bool in_brackets, uint32_t *code)
{
    if (r->at == r->end) {
        refuse(r, "the pattern ends with a backslash");
        return ESCAPE_FAULT;
    }
    const char kind = *r->at++;
    switch (kind) {
    /* clang-format off */
    case 'n': *code = '\n'; return ESCAPE_CODE;
    case 'r': *code = '\r'; return ESCAPE_CODE;
    case 't': *code = '\t'; return ESCAPE_CODE;
    case 'f': *code = '\f'; return ESCAPE_CODE;
    case 'v': *code = '\v'; return ESCAPE_CODE;
    case 'a': *code = '\a'; return ESCAPE_CODE;
    case 'x': return parse_hex(r, 2, code) ? ESCAPE_CODE : ESCAPE_FAULT;
    case 'u': return parse_hex(r, 4, code) ? ESCAPE_CODE : ESCAPE_FAULT;
    case 's':
    case 'S': set_add_spaces(r->set, kind == 'S'); return ESCAPE_SET;
    case 'd':
    case 'D': set_add_codes(r->set, &code_sets[CODE_ND], kind == 'D'); return ESCAPE_SET;
    case 'w':
    case 'W': word_add(r, kind == 'W', in_brackets); return ESCAPE_SET;
    case 'p':
    case 'P': return parse_property(r, kind == 'P') ? ESCAPE_SET : ESCAPE_FAULT;
    /* clang-format on */
    case 'A':
    case 'z':
        if (!in_brackets)
            return ESCAPE_ANCHOR;
        break;
    default:
        if ((uint8_t)kind < 0x80 && !((kind | 32) >= 'a' && (kind | 32) <= 'z') && !(kind >= '0' && kind <= '9')) {
            *code = (uint8_t)kind;
            return ESCAPE_CODE;
        }
    }
    r->at--;
    refuse(r, "tokmap does not know the exact meaning of this escape");
    return ESCAPE_FAULT;
}

static uint32_t parse_code_point(struct rewriter *r)
{
    size_t bytes;
    const uint32_t code = code_point_get((const uint8_t *)r->at, &bytes);
    r->at += bytes;
    return code;
}

/* ---- brackets ---- */

static bool parse_class(struct rewriter *r);

/* At a bracket inside of brackets: parses the inner class and adds it to the set. */
static bool parse_nested_class(struct rewriter *r)
{
    struct set *outer = r->set, *inner = calloc(1, sizeof *inner);
    if (!inner)
        return false;
    r->at++;
    r->set = inner;
    bool good = r->classes < CLASSES_MOST || refuse(r, "classes are nested more than 8 deep");
    r->classes++;
    good = good && (r->at == r->end || *r->at != ':' || refuse(r, "class names such as [:alpha:] are not supported")) &&
           parse_class(r);
    r->classes--;
    r->set = outer;
    for (size_t i = 0; good && i < CODES / 64; i++)
        outer->words[i] |= inner->words[i];
    free(inner);
    return good;
}

/* Returns whether the pattern continues with the operator twice. */
static bool at_both(const struct rewriter *r, char operator_)
{
    return r->end - r->at > 1 && r->at[0] == operator_ && r->at[1] == operator_;
}

/* Parses one member or one range of a class. */
static bool parse_member(struct rewriter *r)
{
    uint32_t first, last;
    if (*r->at == '[')
        return r->folds[r->depth] ? refuse(r, "classes inside of classes under (?i) are not supported")
                                  : parse_nested_class(r);
    if (*r->at == '\\') {
        r->at++;
        const enum escape escape = parse_escape(r, true, &first);
        if (escape == ESCAPE_FAULT || escape == ESCAPE_ANCHOR)
            return false;
        if (escape == ESCAPE_SET) {
            if (r->folds[r->depth])
                return refuse(r, "a set under (?i) is not supported");
            if (r->end - r->at > 1 && r->at[0] == '-' && r->at[1] != ']')
                return refuse(r, "a range begins with a set");
            return true;
        }
    } else {
        first = parse_code_point(r);
    }
    last = first;
    if (r->dialect == REGEX_RUST && (at_both(r, '-') || at_both(r, '~')))
        return refuse(r, "the class operators -- and ~~ are not supported");
    if (r->end - r->at > 1 && r->at[0] == '-' && r->at[1] != ']') {
        r->at++;
        if (*r->at == '[')
            return refuse(r, "a range ends with a class");
        if (*r->at == '\\') {
            r->at++;
            if (parse_escape(r, true, &last) != ESCAPE_CODE)
                return refuse(r, "a range ends with a set");
        } else {
            last = parse_code_point(r);
        }
        if (last < first)
            return refuse(r, "a range ends before it begins");
    }
    if (r->folds[r->depth] && last >= 0x80)
        return refuse(r, "a character beyond ASCII under (?i) is not supported");
    set_add(r->set, first, last);
    return true;
}

/* After &&: the set holds the part before it; the members of a part are joined before parts are intersected. Intersects
 * *left with the set and clears the set for the next part. */
static bool intersect(struct rewriter *r, struct set **left)
{
    if (r->folds[r->depth])
        return refuse(r, "&& under (?i) is not supported");
    if (!*left) {
        *left = malloc(sizeof **left);
        if (!*left)
            return false;
        memset(*left, 0xFF, sizeof **left);
    }
    for (size_t i = 0; i < CODES / 64; i++)
        (*left)->words[i] &= r->set->words[i];
    memset(r->set, 0, sizeof *r->set);
    return true;
}

/* Parses a class from after the opening bracket to after the closing one, into the set, which must be empty. */
static bool parse_class(struct rewriter *r)
{
    struct set *left = NULL; /* of && */
    const bool inverted = r->at < r->end && *r->at == '^';
    r->at += inverted;
    bool good = true;
    for (bool first = true; good && r->at < r->end && (*r->at != ']' || first);) {
        if (!at_both(r, '&')) {
            good = (*r->at != ']' || !r->classes || refuse(r, "a class is empty")) && parse_member(r);
            first = false;
        } else if (first || r->end - r->at < 3 || r->at[2] == ']' || r->at[2] == '&') {
            good = refuse(r, "&& has nothing on one side");
        } else {
            r->at += 2;
            good = intersect(r, &left);
        }
    }
    if (good && r->at == r->end)
        good = refuse(r, "a class lacks its ]");
    r->at += good;
    for (size_t i = 0; good && left && i < CODES / 64; i++)
        r->set->words[i] &= left->words[i];
    free(left);
    if (good && r->folds[r->depth])
        set_fold(r->set);
    if (good && inverted)
        set_invert(r->set);
    return good;
}

/* ---- outside of brackets ---- */

/* Returns whether the two letters under (?i) also match one character: ss matches U+00DF, and some pairs match
 * ligatures. */
static bool may_fold_together(uint32_t one, uint32_t two)
{
    one |= 32;
    two |= 32;
    return (one == 's' && (two == 's' || two == 't')) || (one == 'f' && (two == 'f' || two == 'i' || two == 'l'));
}

static bool literal_write(struct rewriter *r, uint32_t code)
{
    if (r->folds[r->depth]) {
        const bool letter = (code | 32) >= 'a' && (code | 32) <= 'z';
        if (code >= 0x80)
            return refuse(r, "a character beyond ASCII under (?i) is not supported");
        if (letter && r->at < r->end && may_fold_together(code, (uint8_t)*r->at) && r->dialect == REGEX_ONIGURUMA)
            return refuse(r, "letter pairs under (?i) that also match one character (ss, st, ff, fi, fl) are not "
                             "supported");
        memset(r->set, 0, sizeof *r->set);
        set_add(r->set, code, code);
        set_fold(r->set);
        return set_write(r);
    }
    return code_write(r, code);
}

static bool parse_group(struct rewriter *r)
{
    static const char *const same[] = {"?:", "?=", "?!", "?<=", "?<!", "?>"};
    if (r->depth + 1 == GROUPS_MOST)
        return refuse(r, "groups are nested too deep");
    const bool fold = r->folds[r->depth];
    r->before = NOTHING_BEFORE;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        const size_t bytes = strlen(same[i]);
        if ((size_t)(r->end - r->at) >= bytes && !memcmp(r->at, same[i], bytes)) {
            r->at += bytes;
            r->folds[++r->depth] = fold;
            return copy(r, "(") && copy(r, same[i]);
        }
    }
    if (r->end - r->at >= 3 && !memcmp(r->at, "?i:", 3)) {
        r->at += 3;
        r->folds[++r->depth] = true;
        return copy(r, "(?:");
    }
    if (r->end - r->at >= 3 && !memcmp(r->at, "?i)", 3) && r->at == r->pattern + 1) {
        r->at += 3;
        r->folds[r->depth] = true; /* at the very start it applies to the whole pattern */
        return true;
    }
    if (r->at < r->end && *r->at == '?')
        return refuse(r, "this kind of group is not supported");
    r->folds[++r->depth] = fold;
    return copy(r, "(?:");
}

/* Parses {n}, {n,}, {,m}, or {n,m} after an atom. Anything else is a literal brace. */
static bool parse_interval(struct rewriter *r)
{
    const char *at = r->at + 1;
    const char *first = at;
    while (at < r->end && *at >= '0' && *at <= '9')
        at++;
    const bool low = at > first;
    const bool comma = at < r->end && *at == ',';
    at += comma;
    const char *second = at;
    while (at < r->end && *at >= '0' && *at <= '9')
        at++;
    const bool high = at > second;
    if (at == r->end || *at != '}' || (!low && !high)) {
        r->at++;
        r->before = ATOM_BEFORE;
        return r->dialect == REGEX_RUST ? refuse(r, "a brace does not begin an interval") : code_write(r, '{');
    }
    if (r->before != ATOM_BEFORE || at - first > 8)
        return refuse(r, "an interval follows nothing, follows another quantifier, or is too large");
    at++;
    if (!copy(r, "{") || (!low && !copy(r, "0")) || !bytes_append(r->into, first, (size_t)(at - first)))
        return false;
    if (!low && r->dialect == REGEX_RUST)
        return refuse(r, "an interval has no lower limit");
    r->at = at;
    r->before = QUANTIFIED_BEFORE;
    if (at < r->end && *at == '?') {
        if (!comma)
            return refuse(r, "the engines disagree on {n}?");
        r->at++;
        return copy(r, "?");
    }
    if (at < r->end && *at == '+') {
        if (r->dialect == REGEX_ONIGURUMA)
            return refuse(r, "{n,m}+ is not possessive in the reference engine; write it as a group");
        r->at++;
        return copy(r, "+");
    }
    return true;
}

static bool parse_quantifier(struct rewriter *r)
{
    if (r->before != ATOM_BEFORE)
        return refuse(r, "a quantifier follows nothing or another quantifier");
    char text[3] = {*r->at++, 0, 0};
    if (r->at < r->end && (*r->at == '?' || *r->at == '+'))
        text[1] = *r->at++;
    r->before = QUANTIFIED_BEFORE;
    return copy(r, text);
}

static bool parse_backslash(struct rewriter *r)
{
    uint32_t code;
    memset(r->set, 0, sizeof *r->set);
    const char kind = ++r->at < r->end ? *r->at : 0;
    const enum escape escape = parse_escape(r, false, &code);
    if (escape == ESCAPE_FAULT)
        return false;
    if (escape == ESCAPE_ANCHOR) {
        r->before = NOTHING_BEFORE;
        return copy(r, kind == 'A' ? "\\A" : "\\z");
    }
    r->before = ATOM_BEFORE;
    if (escape == ESCAPE_CODE)
        return literal_write(r, code);
    if (r->folds[r->depth] && (kind == 'p' || kind == 'P'))
        return refuse(r, "a set under (?i) is not supported");
    return set_write(r);
}

static bool parse_one(struct rewriter *r)
{
    switch (*r->at) {
    case '\\':
        return parse_backslash(r);
    case '[':
        r->at++;
        r->before = ATOM_BEFORE;
        memset(r->set, 0, sizeof *r->set);
        return parse_class(r) && set_write(r);
    case '(':
        r->at++;
        return parse_group(r);
    case ')':
        if (!r->depth)
            return refuse(r, "a ) lacks its (");
        r->depth--;
        r->at++;
        r->before = ATOM_BEFORE;
        return copy(r, ")");
    case '*':
    case '+':
    case '?':
        return parse_quantifier(r);
    case '{':
        return parse_interval(r);
    case '|':
        r->at++;
        r->before = NOTHING_BEFORE;
        return copy(r, "|");
    case '.':
        r->at++;
        r->before = ATOM_BEFORE;
        memset(r->set, 0, sizeof *r->set);
        set_add(r->set, '\n', '\n');
        set_invert(r->set);
        return set_write(r);
    case '^':
    case '$': {
        const bool start = *r->at++ == '^';
        r->before = NOTHING_BEFORE;
        /* In Oniguruma: of a line; ^ does not match after a newline that ends the text. */
        if (r->dialect == REGEX_ONIGURUMA)
            return copy(r, start ? "(?:\\A|(?<=" : "(?=") && code_write(r, '\n') &&
                   copy(r, start ? ")(?!\\z))" : "|\\z)");
        return copy(r, start ? "\\A" : "\\z");
    }
    default:
        r->before = ATOM_BEFORE;
        return literal_write(r, parse_code_point(r));
    }
}

bool regex_rewrite(struct bytes_buffer *into, struct regex_sets *sets, const char *pattern, size_t bytes,
                   enum regex_dialect dialect, struct regex_fault *fault)
{
    struct rewriter r;
    assert(into && sets && fault && (pattern || !bytes));
    memset(&r, 0, sizeof r);
    r.pattern = r.at = pattern;
    r.end = pattern + bytes;
    r.dialect = dialect;
    r.into = into;
    r.sets = sets;
    r.fault = fault;
    *fault = (struct regex_fault){0, NULL};
    r.set = malloc(sizeof *r.set);
    bool good = r.set != NULL;
    while (good && r.at < r.end)
        good = parse_one(&r);
    assert(r.at <= r.end && r.depth < GROUPS_MOST && (!good || r.classes == 0));
    if (good && r.depth)
        good = refuse(&r, "a ( lacks its )");
    free(r.set);
    return good;
}

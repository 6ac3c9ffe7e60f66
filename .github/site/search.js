/* SPDX-License-Identifier: MIT */
/* Full-text search over the sections of all pages. The index is a script, which a page opened from a file can load. */
"use strict";
(function () {
    const field = document.getElementById("site-search"), results = document.getElementById("site-results");
    let index = null;

    window.searchIndex = function (sections) {
        index = sections.map(([address, title, text]) => ({address, title, text, low: text.toLowerCase(),
                                                           lowTitle: title.toLowerCase()}));
        show();
    };

    function load() {
        if (document.getElementById("site-index"))
            return;
        const script = document.createElement("script");
        script.id = "site-index";
        script.src = "search-index.js";
        document.head.append(script);
    }

    /* Returns how well a section matches, 0 if a word is missing. Words in titles count more. */
    function score(section, words) {
        let sum = 0;
        for (const word of words) {
            const inTitle = section.lowTitle.includes(word), times = section.low.split(word).length - 1;
            if (!inTitle && !times)
                return 0;
            sum += (inTitle ? 20 : 0) + Math.min(times, 5) / (1 + section.low.length / 4000);
        }
        return sum;
    }

    function snippet(section, words) {
        const first = Math.min(...words.map(word => section.low.indexOf(word)).filter(at => at >= 0), 1e9);
        const begin = first > 1e8 ? 0 : Math.max(0, section.text.lastIndexOf(" ", Math.max(0, first - 50)) + 1);
        return (begin ? "… " : "") + section.text.slice(begin, begin + 160);
    }

    /* Appends a text, in which the words are marked. It is added as text, whatever it contains. */
    function append(to, text, words) {
        const pattern = new RegExp("(" + words.map(word => word.replace(/[^\w\s]/g, "\\$&")).join("|") + ")", "i");
        text.split(pattern).forEach((part, at) => {
            if (at % 2)
                to.append(Object.assign(document.createElement("mark"), {textContent: part}));
            else
                to.append(part);
        });
    }

    function show() {
        const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
        results.replaceChildren();
        results.hidden = !words.length || !index;
        if (results.hidden)
            return;
        const best = index.map(section => [score(section, words), section]).filter(([points]) => points > 0)
                          .sort((a, b) => b[0] - a[0]).slice(0, 20);
        for (const [, section] of best) {
            const link = Object.assign(document.createElement("a"), {href: section.address});
            const title = document.createElement("strong"), text = document.createElement("span");
            append(title, section.title, words);
            append(text, snippet(section, words), words);
            link.append(title, text);
            results.append(document.createElement("li"));
            results.lastChild.append(link);
        }
        if (!best.length)
            results.append(Object.assign(document.createElement("li"), {textContent: "Nothing found."}));
    }

    field.addEventListener("focus", load);
    field.addEventListener("input", () => { load(); show(); });
    field.form.addEventListener("submit", event => {
        event.preventDefault();
        const first = results.querySelector("a");
        if (first)
            location.href = first.href;
    });
    document.addEventListener("keydown", event => {
        if (event.key === "/" && document.activeElement !== field) {
            event.preventDefault();
            field.focus();
        } else if (event.key === "Escape") {
            results.hidden = true;
            field.blur();
        }
    });
    results.addEventListener("click", () => { results.hidden = true; });
    document.addEventListener("click", event => {
        results.hidden = results.hidden || !field.form.contains(event.target);
    });

    /* The list of pages is open where it is a column of its own. */
    const wide = matchMedia("(min-width: 60rem)"), pages = document.querySelector("nav.pages details");
    const fit = () => { pages.open = wide.matches; };
    wide.addEventListener("change", fit);
    fit();
    const current = pages.querySelector("[aria-current]");
    if (wide.matches && current)
        pages.parentNode.scrollTop = current.offsetTop - pages.parentNode.clientHeight / 2;
})();

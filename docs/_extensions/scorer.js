/* Pages for users come before those for developers, and titles with all words of the search come first. */
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, title, , , score]) => {
    const asked = new URLSearchParams(window.location.search).get("q") || "";
    const words = asked.toLowerCase().match(/[\p{L}\d]+/gu) || [];
    const named = title.toLowerCase().replace(/[\u2010-\u2014]/g, "-");
    const inTitle = words.filter((word) => named.includes(word.replace(/s$/, ""))).length;
    const isForFew = /^(generated|changelog|decisions|architecture|extending|measured|papers|notation|mathematics|boards_math)/;
    const isObject = page.startsWith("generated/") && named.split(".").pop() === asked.toLowerCase();
    return Math.min(score, 20) + (20 * inTitle) / Math.max(words.length, 1) - (isForFew.test(page) && !isObject ? 15 : 0);
  },
};

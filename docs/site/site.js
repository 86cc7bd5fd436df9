// Whoever has no mouse scrolls with the keys, for which what scrolls has to take the focus.
addEventListener("load", () => {
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  }
});

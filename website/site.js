// What assistive technology needs and the template lacks: names of the buttons at code, and wide tables that the keyboard
// can scroll.
const improve = () => {
  document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code ${i + 1}`));
  document.querySelectorAll(".md-typeset__scrollwrap, pre > code").forEach((box) => (box.tabIndex = 0));
};
improve();
new MutationObserver(improve).observe(document.body, { childList: true, subtree: true });

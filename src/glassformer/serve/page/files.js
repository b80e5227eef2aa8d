// Translation of files: chosen, or dropped on the page.

import { get, retrying, upload } from "./api.js";
import { el } from "./elements.js";
import { t } from "./strings.js";

const POLL_MS = 500;

/** The field for files. */
export function fileTranslation(settings, options, say) {
  const accepted = settings.supportedFilesFormat.join(",");
  const input = el("input", { type: "file", id: "file", accept: accepted, onchange: () => input.files[0] && translate(input.files[0]) });
  const bar = el("progress", { hidden: true, "aria-label": t("file") });
  const results = el("ul", { class: "files" });
  const node = el("details", {}, el("summary", {}, t("file")),
    el("label", { for: "file" }, t("fileHelp", settings.supportedFilesFormat.join(", "))), input, bar, results);

  async function translate(file) {
    node.open = true;
    const { source, target } = options();
    const id = [...crypto.getRandomValues(new Uint8Array(16))].map((x) => x.toString(16).padStart(2, "0")).join("");
    bar.hidden = false;
    bar.removeAttribute("value");
    say();
    let isAsked = false;
    const poll = setInterval(async () => {
      if (isAsked) return; // a slow answer is waited for
      isAsked = true;
      try {
        const { done, total } = await get(`/translate_file/progress/${id}`);
        if (total && !bar.hidden) {
          bar.max = total;
          bar.value = done;
          say(t("working", done, total));
        }
      } catch { /* the answer to the file tells */ }
      isAsked = false;
    }, POLL_MS);
    try {
      const { translatedFileUrl } = await retrying(() => upload("/translate_file", { file, source, target, progress: id }), say);
      const link = el("a", { href: new URL(translatedFileUrl).pathname, download: "" }, t("download", file.name));
      results.prepend(el("li", {}, link));
      say();
      link.focus();
    } catch (error) {
      say(error.message, true);
    }
    clearInterval(poll);
    bar.hidden = true;
    input.value = "";
  }

  const highlight = (on) => node.closest("section").classList.toggle("dropping", on);
  document.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    highlight(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || highlight(false));
  document.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    highlight(false);
    if (!node.closest("section").hidden) translate(file);
  });
  return node;
}

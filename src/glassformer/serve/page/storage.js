// What the browser keeps for the page, for good or until a tab is closed. Where it refuses, it is kept until the page is closed.

// Files that are opened from a disk share one storage: those of a model that is in its page have its name.
const PREFIX = document.getElementById("model-sum") ? `${document.title}.` : "";

/** @param {() => Storage} open */
function storage(open) {
  /** @type {Map<string, string>} */
  const memory = new Map();
  /** @param {(store: Storage) => any} act @param {() => any} otherwise */
  const attempt = (act, otherwise) => {
    try {
      return act(open());
    } catch { // cookies are blocked, or the storage is full
      return otherwise();
    }
  };
  return {
    /** @param {string} key */
    name: (key) => PREFIX + key,
    /** @param {string} key @returns {string | null} */
    get: (key) => attempt((store) => store.getItem(PREFIX + key), () => memory.get(key) ?? null) ?? memory.get(key) ?? null,
    /** @param {string} key @param {string} value */
    set: (key, value) => attempt((store) => store.setItem(PREFIX + key, value), () => memory.set(key, String(value))),
    /** @param {string} key */
    remove: (key) => {
      memory.delete(key);
      attempt((store) => store.removeItem(PREFIX + key), () => {});
    },
  };
}

export const local = storage(() => localStorage);
export const session = storage(() => sessionStorage);

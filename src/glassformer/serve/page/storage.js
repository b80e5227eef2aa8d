// What the browser keeps for the page, for good or until a tab is closed. Where it refuses, it is kept until the page is closed.

// Files that are opened from a disk share one storage: those of a model that is in its page have its name.
const PREFIX = document.getElementById("model-sum") ? `${document.title}.` : "";

function storage(open) {
  const memory = new Map();
  const attempt = (act, otherwise) => {
    try {
      return act(open());
    } catch { // cookies are blocked, or the storage is full
      return otherwise();
    }
  };
  return {
    name: (key) => PREFIX + key,
    get: (key) => attempt((store) => store.getItem(PREFIX + key), () => memory.get(key) ?? null) ?? memory.get(key) ?? null,
    set: (key, value) => attempt((store) => store.setItem(PREFIX + key, value), () => memory.set(key, String(value))),
    remove: (key) => {
      memory.delete(key);
      attempt((store) => store.removeItem(PREFIX + key), () => {});
    },
  };
}

export const local = storage(() => localStorage);
export const session = storage(() => sessionStorage);

// Settings of this browser: colours, times in UTC, keys. They stay when the storage is not available.
const memory = new Map();

export function pref(name) {
  if (memory.has(name)) return memory.get(name);
  let value = null;
  try {
    value = localStorage.getItem(`positronic.${name}`);
  } catch { /* The browser forbids storage. */ }
  memory.set(name, value);
  return value;
}

export function setPref(name, value) {
  memory.set(name, value);
  try {
    localStorage.setItem(`positronic.${name}`, value);
  } catch { /* The setting lasts until the page closes. */ }
}

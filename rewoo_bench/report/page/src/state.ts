// Everything that can be seen is in the URL's fragment, so that a link opens the same view and "back" works.

import { useEffect, useState } from "preact/hooks";

export interface State {
  q: string; // name of the open question (`nameOf` in table.ts)
  a: string[]; // labels of the systems shown; empty means all
  sort: string; // a column, with - before it for descending
  show: string; // filter by outcome: "", "only:LABEL", "wrong", "right", "differ", "failed"
  type: string;
  stop: string;
  part: string; // the look-up at which the systems shown part, or "never"
  find: string;
}

const EMPTY: State = { q: "", a: [], sort: "", show: "", type: "", stop: "", part: "", find: "" };

export function parse(fragment: string): State {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const state: State = { ...EMPTY };
  for (const name of ["q", "sort", "show", "type", "stop", "part", "find"] as const) state[name] = given.get(name) ?? "";
  state.a = given.getAll("a");
  return state;
}

export function fragment(state: State): string {
  const parts = new URLSearchParams();
  for (const name of ["q", "sort", "show", "type", "stop", "part", "find"] as const) if (state[name]) parts.set(name, state[name]);
  for (const label of state.a) parts.append("a", label);
  return `#${parts.toString()}`;
}

// A new view is an entry of the history; typing in the search field replaces the last one.
export function go(change: Partial<State>, replace = false): void {
  const url = fragment({ ...parse(location.hash), ...change });
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  window.dispatchEvent(new Event("hashchange"));
}

export function useLocation(): State {
  const [state, set] = useState(() => parse(location.hash));
  useEffect(() => {
    const read = () => set(parse(location.hash));
    window.addEventListener("hashchange", read);
    window.addEventListener("popstate", read);
    return () => {
      window.removeEventListener("hashchange", read);
      window.removeEventListener("popstate", read);
    };
  }, []);
  return state;
}

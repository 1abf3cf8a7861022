/** The frame around every page: the name of the company, the navigation and the signed-in user. */
import type { Me } from "canvassing-client/api";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { isAdmin, nameOf } from "../api/reference.ts";
import { Button } from "../ui/button.tsx";
import { Select } from "../ui/field.tsx";
import { Icon } from "../ui/icon.tsx";
import { Notices } from "../ui/notices.tsx";
import { lazily, Part } from "../ui/states.tsx";
import { labelOf } from "../users/rights.tsx";
import { Connection } from "./connection.tsx";
import icon from "./icon.svg";
import { Keys } from "./keys.tsx";
import { type Destination, destinations } from "./navigation.ts";
import style from "./shell.module.css";
import { chooseTheme, themeOf, themes } from "./theme.ts";

const SignOut = lazily(async () => (await import("./sign-out.tsx")).SignOut);

export function Shell({ me, children }: { me: Me; children: ReactNode }) {
  const [path] = useLocation();
  const [isOpen, setOpen] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const [theme, setTheme] = useState(themeOf);
  const shown = destinations.filter(({ adminsOnly = false }) => !adminsOnly || isAdmin(me));
  const current = shown.find((destination) => isCurrent(destination, path));

  // On a narrow screen the navigation covers the page, so it closes when a page is opened, at a press beside it, and at Escape.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect must run when `path` changes
  useEffect(() => setOpen(false), [path]);
  const menu = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const listening = new AbortController();
    const close = (event: PointerEvent | KeyboardEvent): void => {
      const inside = "key" in event ? "dialog" : `.${style.bar}, .${style.side}, dialog`;
      if ("key" in event && event.key !== "Escape") return;
      if (event.target instanceof Element && event.target.closest(inside) !== null) return;
      setOpen(false);
      if ("key" in event) menu.current?.focus();
    };
    addEventListener("pointerdown", close, { signal: listening.signal });
    addEventListener("keydown", close, { signal: listening.signal });
    return () => listening.abort();
  }, [isOpen]);
  useEffect(() => {
    document.title = `${current?.name ?? "Not found"} · ${me.company.name}`;
  }, [current, me]);

  return (
    <div className={style.shell} data-field={path === "/field"}>
      <a className={style.skip} href="#content">
        Skip to the content
      </a>
      <header className={`${style.bar} row`}>
        <Button ref={menu} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name="menu" /> <span>Menu</span>
        </Button>
        <strong>{me.company.name}</strong>
      </header>
      <aside className={style.side} data-open={isOpen} aria-label="Company and pages">
        <div className={`${style.brand} row`}>
          <img src={icon} alt="" width="28" height="28" />
          <span>
            <strong>{me.company.name}</strong>
            <small>Canvassing</small>
          </span>
        </div>
        <nav aria-label="Pages">
          {shown.map((destination) => (
            <Link
              key={destination.path}
              href={destination.path}
              className={style.link ?? ""}
              aria-current={destination === current ? "page" : undefined}
            >
              <Icon name={destination.icon} />
              {destination.name}
            </Link>
          ))}
        </nav>
        <div className={`${style.user} stack tight`}>
          <span>
            <strong>{nameOf(me.user)}</strong>
            <small>{labelOf(me.role)}</small>
          </span>
          <Select
            aria-label="Colours"
            value={theme}
            options={themes}
            onChange={({ target }) => setTheme(chooseTheme(target.value))}
          />
          <div className="row between">
            <Button kind="quiet" onClick={() => setLeaving(true)}>
              Sign out
            </Button>
            <Keys />
          </div>
        </div>
      </aside>
      <main id="content" className={style.main} tabIndex={-1}>
        {/* The field mode works without a connection, and shows its own message about it. */}
        {path !== "/field" && <Connection />}
        {/* With this `key`, a page that has failed does not hide the page that the user opens next. */}
        <Part key={path} what="the page">
          {children}
        </Part>
      </main>
      <Part>{isLeaving && <SignOut onClose={() => setLeaving(false)} />}</Part>
      <Notices />
    </div>
  );
}

const isCurrent = ({ path }: Destination, current: string): boolean =>
  current === path || current.startsWith(`${path}/`);

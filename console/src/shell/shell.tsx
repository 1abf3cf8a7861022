/** The frame around every page: the name of the company, the navigation and the signed-in user. */
import type { Me } from "canvassing-client/api";
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { isAdmin, nameOf } from "../api/reference.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Notices } from "../ui/notices.tsx";
import { Connection } from "./connection.tsx";
import icon from "./icon.svg";
import { type Destination, destinations } from "./navigation.ts";
import style from "./shell.module.css";
import { chooseTheme, themeOf } from "./theme.ts";

const SignOut = lazy(async () => ({ default: (await import("./sign-out.tsx")).SignOut }));

export function Shell({ me, children }: { me: Me; children: ReactNode }) {
  const [path] = useLocation();
  const [isOpen, setOpen] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const [theme, setTheme] = useState(themeOf);
  const shown = destinations.filter(({ adminsOnly = false }) => !adminsOnly || isAdmin(me));
  const current = shown.find((destination) => isCurrent(destination, path));

  // On a narrow screen the navigation covers the page, so it closes when a page is opened.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the effect must run when `path` changes
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    document.title = `${current?.name ?? "Not found"} · ${me.company.name}`;
  }, [current, me]);

  return (
    <div className={style.shell} data-field={path === "/field"}>
      <a className={style.skip} href="#content">
        Skip to the content
      </a>
      <header className={style.bar}>
        <button type="button" className={style.menu} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name="menu" /> Menu
        </button>
        <span className={style.company}>{me.company.name}</span>
      </header>
      <aside className={style.side} data-open={isOpen} aria-label="Company and pages">
        <div className={style.brand}>
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
        <label className={style.theme}>
          Colours
          <select value={theme} onChange={({ target }) => setTheme(chooseTheme(target.value))}>
            <option value="device">as on the device</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
          </select>
        </label>
        <div className={style.user}>
          <span>
            <strong>{nameOf(me.user)}</strong>
            <small>
              {me.role === "sales" ? "Sales representative" : me.role === "admin" ? "Administrator" : "Owner"}
            </small>
          </span>
          <Button kind="quiet" onClick={() => setLeaving(true)}>
            Sign out
          </Button>
        </div>
      </aside>
      <main id="content" className={style.main} tabIndex={-1}>
        <Connection />
        {children}
      </main>
      <Suspense>{isLeaving && <SignOut onClose={() => setLeaving(false)} />}</Suspense>
      <Notices />
    </div>
  );
}

const isCurrent = ({ path }: Destination, current: string): boolean =>
  current === path || current.startsWith(`${path}/`);

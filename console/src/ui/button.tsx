/**
 * The buttons of the console: `main` for the main action of a page, `plain` for other actions, `quiet` for less important actions, and
 * `danger` for deletions.
 */
import type { ComponentProps } from "react";
import style from "./button.module.css";

export type ButtonKind = "main" | "plain" | "quiet" | "danger";

interface ButtonProps extends Omit<ComponentProps<"button">, "className"> {
  readonly kind?: ButtonKind;
}

export function Button({ kind = "plain", type = "button", ...rest }: ButtonProps) {
  return <button type={type} className={buttonClass(kind)} {...rest} />;
}

/** For links that look like buttons. */
export const buttonClass = (kind: ButtonKind): string => `${style.button} ${style[kind]}`;

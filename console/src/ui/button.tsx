/**
 * The buttons of the console: `main` for the main action of a page, `plain` for other actions, `quiet` for less important actions, and
 * `danger` for deletions.
 */
import type { ComponentProps } from "react";
import style from "./button.module.css";

interface ButtonProps extends Omit<ComponentProps<"button">, "className"> {
  readonly kind?: "main" | "plain" | "quiet" | "danger";
}

export function Button({ kind = "plain", type = "button", ...rest }: ButtonProps) {
  return <button type={type} className={`${style.button} ${style[kind]}`} {...rest} />;
}

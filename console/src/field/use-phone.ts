/** Gives the components of the field mode the copy of the user's data on this device. */
import { createContext, use, useSyncExternalStore } from "react";
import type { Copy, Phone } from "./phone.ts";

export const PhoneContext = createContext<Phone | undefined>(undefined);

export function usePhone(): Phone {
  const phone = use(PhoneContext);
  if (phone === undefined) throw new Error("there is no PhoneContext");
  return phone;
}

export function useCopy(): Copy {
  const phone = usePhone();
  return useSyncExternalStore(phone.subscribe, phone.copy);
}
